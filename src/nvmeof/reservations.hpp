// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "wire/nvme.hpp"

namespace ernic::nvmeof {

/// Who may touch a namespace: hosts that have registered with a key, and at most one reservation (Base
/// Specification 8.19). Thread: device.
class Reservations {
  public:
    using HostId = wire::nvme::HostId;
    using Status = wire::nvme::Status;
    static constexpr std::size_t kMaxRegistrants = 128;

    enum class Type : std::uint8_t {
        None = 0,
        WriteExclusive = 1,
        ExclusiveAccess = 2,
        WriteExclusiveRegistrants = 3,
        ExclusiveAccessRegistrants = 4,
        WriteExclusiveAll = 5,
        ExclusiveAccessAll = 6,
    };
    /// Reservation types 1 to 6 are known.
    [[nodiscard]] static bool known(std::uint8_t type) { return type >= 1 && type <= 6; }

    struct Registrant {
        HostId host{};
        std::uint64_t key = 0;
        friend bool operator==(const Registrant&, const Registrant&) = default;
    };
    /// Something that a host must be told (the type of a reservation notification).
    struct Notice {
        HostId host{};
        std::uint8_t type = 0;
    };
    using Notices = std::vector<Notice>;

    [[nodiscard]] bool held() const { return type_ != Type::None; }
    /// Whether the reservation lets `host` read or write.
    [[nodiscard]] bool allows(const HostId& host, bool writes) const;

    enum class RegisterAction : std::uint8_t { Register = 0, Unregister = 1, Replace = 2 };
    Status change_registration(RegisterAction action, const HostId& host, bool ignore_key,
                               std::uint64_t current_key, std::uint64_t new_key, Notices& notices);
    Status acquire(const HostId& host, bool ignore_key, std::uint64_t current_key, Type type);
    Status preempt(const HostId& host, bool ignore_key, std::uint64_t current_key, std::uint64_t other_key,
                   Type type, Notices& notices);
    Status release(const HostId& host, bool ignore_key, std::uint64_t current_key, Type type,
                   Notices& notices);
    Status clear(const HostId& host, bool ignore_key, std::uint64_t current_key, Notices& notices);

    [[nodiscard]] const std::vector<Registrant>& registrants() const { return registrants_; }
    [[nodiscard]] bool holds(const HostId& host) const;
    [[nodiscard]] Type type() const { return type_; }
    [[nodiscard]] std::uint32_t generation() const { return generation_; }
    /// Whether all this survives the end of the process (PTPL).
    bool persistent = false;

    /// All of it as text for a medium, at most 3200 bytes; and back. Fails: false, it is damaged or not ours,
    /// and nothing has changed.
    [[nodiscard]] std::vector<std::byte> save() const;
    bool load(Bytes text);
    [[nodiscard]] const HostId& holder() const { return holder_; }

  private:
    [[nodiscard]] const Registrant* find(const HostId& host) const;
    /// Registered, with that key unless it does not matter.
    [[nodiscard]] bool entitled(const HostId& host, bool ignore_key, std::uint64_t key) const;
    [[nodiscard]] bool of_all() const {
        return type_ == Type::WriteExclusiveAll || type_ == Type::ExclusiveAccessAll;
    }
    /// Takes out registrants other than `host` for which `which` holds; true when there was one.
    template <typename Which>
    bool expel(const HostId& host, std::uint8_t notice, Notices& notices, Which which);
    void end_reservation(const HostId& host, Notices& notices);
    void unregister(const HostId& host, Notices& notices);

    std::vector<Registrant> registrants_;
    Type type_ = Type::None;
    HostId holder_{};
    std::uint32_t generation_ = 0;
};

}  // namespace ernic::nvmeof
