// SPDX-License-Identifier: MIT
#include "nvmeof/reservations.hpp"

#include <algorithm>
#include <utility>

#include "wire/nvme_log.hpp"

namespace ernic::nvmeof {

using Notification = wire::nvme::ReservationNotice;

namespace {

/// The text of save().
struct SavedHead {
    le32 magic;
    le32 generation;
    std::uint8_t type;
    std::uint8_t registrants;
    le16 reserved10;
    wire::nvme::HostId holder;
};
ERNIC_WIRE(SavedHead, 28);
struct SavedRegistrant {
    wire::nvme::HostId host;
    le64 key;
};
ERNIC_WIRE(SavedRegistrant, 24);
constexpr std::uint32_t kMagic = 0x31525645;  // "EVR1"

}  // namespace

const Reservations::Registrant* Reservations::find(const HostId& host) const {
    const auto found = std::find_if(registrants_.begin(), registrants_.end(),
                                    [&host](const Registrant& each) { return each.host == host; });
    return found == registrants_.end() ? nullptr : &*found;
}

bool Reservations::entitled(const HostId& host, bool ignore_key, std::uint64_t key) const {
    const Registrant* const registrant = find(host);
    return registrant != nullptr && (ignore_key || registrant->key == key);
}

bool Reservations::holds(const HostId& host) const {
    return held() && (of_all() ? find(host) != nullptr : holder_ == host);
}

bool Reservations::allows(const HostId& host, bool writes) const {
    switch (type_) {
        case Type::None:
            return true;
        case Type::WriteExclusive:
            return !writes || holder_ == host;
        case Type::ExclusiveAccess:
            return holder_ == host;
        case Type::WriteExclusiveRegistrants:
        case Type::WriteExclusiveAll:
            return !writes || find(host) != nullptr;
        default:
            return find(host) != nullptr;
    }
}

template <typename Which>
bool Reservations::expel(const HostId& host, std::uint8_t notice, Notices& notices, Which which) {
    const auto kept = std::remove_if(registrants_.begin(), registrants_.end(), [&](const Registrant& each) {
        if (each.host == host || !which(each)) {
            return false;
        }
        notices.push_back({each.host, notice});
        return true;
    });
    const bool any = kept != registrants_.end();
    registrants_.erase(kept, registrants_.end());
    return any;
}

void Reservations::end_reservation(const HostId& host, Notices& notices) {
    const bool shared = type_ != Type::WriteExclusive && type_ != Type::ExclusiveAccess;
    type_ = Type::None;
    holder_ = {};
    if (shared) {
        for (const Registrant& each : registrants_) {
            if (each.host != host) {
                notices.push_back({each.host, Notification::kReleased});
            }
        }
    }
}

void Reservations::unregister(const HostId& host, Notices& notices) {
    const bool held_it = holds(host);
    registrants_.erase(std::remove_if(registrants_.begin(), registrants_.end(),
                                      [&host](const Registrant& each) { return each.host == host; }),
                       registrants_.end());
    if (held_it && (!of_all() || registrants_.empty())) {
        end_reservation(host, notices);
    }
}

Reservations::Status Reservations::change_registration(RegisterAction action, const HostId& host,
                                                       bool ignore_key, std::uint64_t current_key,
                                                       std::uint64_t new_key, Notices& notices) {
    const Registrant* const present = find(host);
    switch (action) {
        case RegisterAction::Register:
            if (present != nullptr) {
                return present->key == new_key ? Status::Success : Status::ReservationConflict;
            }
            break;
        case RegisterAction::Unregister:
            if (!entitled(host, ignore_key, current_key)) {
                return Status::ReservationConflict;
            }
            unregister(host, notices);
            ++generation_;
            return Status::Success;
        case RegisterAction::Replace:
            if (present == nullptr ? !ignore_key : !entitled(host, ignore_key, current_key)) {
                return Status::ReservationConflict;
            }
            break;
    }
    if (present != nullptr) {
        registrants_[static_cast<std::size_t>(present - registrants_.data())].key = new_key;
    } else if (registrants_.size() == kMaxRegistrants) {
        return Status::ReservationConflict;
    } else {
        registrants_.push_back({host, new_key});
    }
    ++generation_;
    return Status::Success;
}

Reservations::Status Reservations::acquire(const HostId& host, bool ignore_key, std::uint64_t current_key,
                                           Type type) {
    if (!entitled(host, ignore_key, current_key) || (held() && (!holds(host) || type_ != type))) {
        return Status::ReservationConflict;
    }
    type_ = type;
    holder_ = host;
    return Status::Success;
}

Reservations::Status Reservations::preempt(const HostId& host, bool ignore_key, std::uint64_t current_key,
                                           std::uint64_t other_key, Type type, Notices& notices) {
    if (!entitled(host, ignore_key, current_key)) {
        return Status::ReservationConflict;
    }
    const auto has_key = [other_key](const Registrant& each) { return each.key == other_key; };
    const auto any = [](const Registrant&) { return true; };
    const Registrant* const holder = held() && !of_all() ? find(holder_) : nullptr;
    if (held() && of_all() && other_key == 0) {
        expel(host, Notification::kReservationPreempted, notices, any);
        type_ = type;
        holder_ = host;
    } else if (holder != nullptr && holder->key == other_key) {
        expel(host, Notification::kReservationPreempted, notices, has_key);
        type_ = type;
        holder_ = host;
    } else if (other_key == 0) {
        return Status::InvalidField;
    } else {
        const bool self = find(host)->key == other_key;
        const bool others = expel(host, Notification::kRegistrationPreempted, notices, has_key);
        if (!others && !self) {
            return Status::ReservationConflict;
        }
        if (self) {
            unregister(host, notices);
        }
    }
    ++generation_;
    return Status::Success;
}

Reservations::Status Reservations::release(const HostId& host, bool ignore_key, std::uint64_t current_key,
                                           Type type, Notices& notices) {
    if (!entitled(host, ignore_key, current_key)) {
        return Status::ReservationConflict;
    }
    if (!holds(host)) {
        return Status::Success;
    }
    if (type_ != type) {
        return Status::InvalidField;
    }
    end_reservation(host, notices);
    return Status::Success;
}

Reservations::Status Reservations::clear(const HostId& host, bool ignore_key, std::uint64_t current_key,
                                         Notices& notices) {
    if (!entitled(host, ignore_key, current_key)) {
        return Status::ReservationConflict;
    }
    expel(host, Notification::kReservationPreempted, notices, [](const Registrant&) { return true; });
    registrants_.clear();
    type_ = Type::None;
    holder_ = {};
    ++generation_;
    return Status::Success;
}

std::vector<std::byte> Reservations::save() const {
    std::vector<std::byte> text;
    const auto add = [&text](Bytes bytes) { text.insert(text.end(), bytes.begin(), bytes.end()); };
    SavedHead head{};
    head.magic.set(kMagic);
    head.generation.set(generation_);
    head.type = static_cast<std::uint8_t>(type_);
    head.registrants = static_cast<std::uint8_t>(registrants_.size());
    head.holder = holder_;
    add(bytes_of(head));
    for (const Registrant& each : registrants_) {
        add(bytes_of(SavedRegistrant{each.host, le64(each.key)}));
    }
    return text;
}

bool Reservations::load(Bytes text) {
    ByteReader reader(text);
    const auto head = reader.read<SavedHead>();
    if (!head || head->magic.get() != kMagic || (head->type != 0 && !known(head->type)) ||
        head->registrants > kMaxRegistrants) {
        return false;
    }
    std::vector<Registrant> registrants;
    bool holder_known = false;
    for (unsigned i = 0; i < head->registrants; ++i) {
        const auto each = reader.read<SavedRegistrant>();
        if (!each) {
            return false;
        }
        holder_known = holder_known || each->host == head->holder;
        registrants.push_back({each->host, each->key.get()});
    }
    const auto type = static_cast<Type>(head->type);
    if (!reader.empty() || (type != Type::None && registrants.empty()) ||
        (type != Type::None && type < Type::WriteExclusiveAll && !holder_known)) {
        return false;
    }
    registrants_ = std::move(registrants);
    type_ = type;
    holder_ = head->holder;
    generation_ = head->generation.get();
    persistent = true;
    return true;
}

}  // namespace ernic::nvmeof
