// SPDX-License-Identifier: MIT
#include "nvmeof/dhchap.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>

namespace ernic::nvmeof {

namespace auth = wire::nvme::auth;

namespace {

void append(Digest& out, Bytes data) {
    out.insert(out.end(), data.begin(), data.end());
}

/// Fails: false when the library has no random numbers.
bool fill_random(MutableBytes out) {
    return RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(out.size())) == 1;
}

}  // namespace

void DhChap::warm_up(bool with_group) {
    std::uint8_t byte = 0;
    (void)fill_random(mutable_bytes_of(byte));
    for (const std::uint8_t hash : {auth::kSha256, auth::kSha384, auth::kSha512}) {
        (void)hmac(hash, bytes_of(byte), {bytes_of(byte)});
        (void)digest(hash, bytes_of(byte));
    }
    if (with_group) {
        // All groups are the same code, and this one is done in a few milliseconds.
        constexpr std::uint8_t kSmallest = 1;
        if (const auto exchange = DhExchange::make(kSmallest)) {
            (void)exchange->secret(exchange->public_value());
        }
    }
}

auth::Header DhChap::header(std::uint8_t type, std::uint8_t id) const {
    return {type, id, {}, le16(transaction_)};
}

void DhChap::fail(auth::Failure why) {
    why_ = why;
    step_ = Step::Failure1;
}

bool DhChap::receive(Bytes message) {
    const auto head = read_value<auth::Header>(message);
    if (!head) {
        fail(auth::Failure::IncorrectPayload);
        return false;
    }
    if (head->id == auth::kFailure2) {
        authenticated_ = false;
        step_ = Step::Over;
        return false;
    }
    const bool may_begin = step_ == Step::Negotiate || (step_ == Step::Over && authenticated_);
    if (may_begin && head->type == auth::kCommon && head->id == auth::kNegotiate) {
        transaction_ = head->transaction.get();
        negotiate(message);
        return step_ == Step::MakingValue;
    }
    const bool of_ours = head->type == auth::kDhChap && head->transaction.get() == transaction_;
    if (step_ == Step::Reply && of_ours && head->id == auth::kReply) {
        return take_reply(message);
    }
    if (step_ == Step::Success2 && of_ours && head->id == auth::kSuccess2) {
        authenticated_ = true;
        step_ = Step::Over;
        return false;
    }
    fail(auth::Failure::IncorrectMessage);
    return false;
}

void DhChap::calculate() {
    if (abandoned_) {
        return;
    }
    if (calculation_.exchange == nullptr) {
        calculation_.exchange = DhExchange::make(group_);
    } else {
        calculation_.secret = calculation_.exchange->secret(calculation_.host_value);
    }
}

void DhChap::calculated() {
    // Somebody out of turn may have ended it meanwhile.
    if (step_ == Step::MakingValue) {
        if (calculation_.exchange == nullptr) {
            return fail(auth::Failure::Failed);
        }
        step_ = Step::Challenge;
    } else if (step_ == Step::MakingSecret) {
        if (calculation_.secret.empty()) {
            return fail(auth::Failure::IncorrectPayload);
        }
        verify();
    }
}

void DhChap::negotiate(Bytes message) {
    const auto wish = read_value<auth::Negotiate>(message);
    if (!wish || wish->descriptors == 0) {
        return fail(auth::Failure::IncorrectPayload);
    }
    const auth::Descriptor& offer = wish->descriptor;
    if (wish->secure_channel != 0) {
        return fail(auth::Failure::ConcatenationMismatch);
    }
    if (offer.method != auth::kDhChap) {
        return fail(auth::Failure::NotUsable);
    }
    const auto hashes_end =
        offer.hash_list.begin() + std::min<std::ptrdiff_t>(offer.hashes, std::ssize(offer.hash_list));
    const auto hash = std::find_if(offer.hash_list.begin(), hashes_end, known_hash);
    if (hash == hashes_end) {
        return fail(auth::Failure::HashUnusable);
    }
    const auto groups_end =
        offer.group_list.begin() + std::min<std::ptrdiff_t>(offer.groups, std::ssize(offer.group_list));
    if (std::find(offer.group_list.begin(), groups_end, group_) == groups_end) {
        return fail(auth::Failure::GroupUnusable);
    }
    hash_ = *hash;
    challenge_.resize(hash_bytes(hash_));
    if (!fill_random(challenge_) || !fill_random(mutable_bytes_of(sequence_))) {
        return fail(auth::Failure::Failed);
    }
    // 0 means that no response is wanted.
    sequence_ = std::max(sequence_, std::uint32_t{1});
    calculation_ = {};
    step_ = group_ == auth::kNullGroup ? Step::Challenge : Step::MakingValue;
}

Digest DhChap::response(Bytes key, const Digest& challenge, std::uint32_t sequence, std::string_view role,
                        std::string_view first, std::string_view second) const {
    constexpr std::uint8_t kZero = 0;  // the secure channel that nobody asked for, and the end of a name
    const Digest augmented =
        group_ == auth::kNullGroup ? challenge : hmac(hash_, digest(hash_, calculation_.secret), {challenge});
    return hmac(hash_, key,
                {augmented, bytes_of(le32(sequence)), bytes_of(le16(transaction_)), bytes_of(kZero),
                 text_bytes(role), text_bytes(first), bytes_of(kZero), text_bytes(second)});
}

bool DhChap::take_reply(Bytes message) {
    const auto reply = read_value<auth::Reply>(message);
    const std::size_t length = hash_bytes(hash_);
    const std::size_t value_length = group_bytes(group_);
    if (!reply || reply->hash_length != length || reply->value_length.get() != value_length ||
        message.size() < sizeof(auth::Reply) + 2 * length + value_length) {
        fail(auth::Failure::IncorrectPayload);
        return false;
    }
    auto take = [rest = message.subspan(sizeof(auth::Reply))](std::size_t size) mutable {
        const Bytes part = rest.first(size);
        rest = rest.subspan(size);
        return Digest(part.begin(), part.end());
    };
    answer_.response = take(length);
    answer_.challenge = take(length);
    answer_.sequence = reply->sequence.get();
    if ((reply->challenge_valid & 1U) == 0) {
        answer_.challenge.clear();
    }
    calculation_.host_value = take(value_length);
    if (group_ != auth::kNullGroup) {
        step_ = Step::MakingSecret;
        return true;
    }
    verify();
    return false;
}

void DhChap::verify() {
    const Digest expected = response(keys_.host, challenge_, sequence_, "HostHost", host_, subsystem_);
    if (expected.empty() ||
        CRYPTO_memcmp(expected.data(), answer_.response.data(), answer_.response.size()) != 0) {
        return fail(auth::Failure::Failed);
    }
    own_response_.clear();
    if (answer_.challenge.empty()) {
        authenticated_ = true;
    } else {
        if (keys_.subsystem.empty()) {
            return fail(auth::Failure::Failed);
        }
        own_response_ =
            response(keys_.subsystem, answer_.challenge, answer_.sequence, "Controller", subsystem_, host_);
    }
    step_ = Step::Success1;
}

Digest DhChap::challenge_message() const {
    auth::Challenge head{};
    head.header = header(auth::kDhChap, auth::kChallenge);
    head.hash_length = static_cast<std::uint8_t>(challenge_.size());
    head.hash = hash_;
    head.group = group_;
    head.value_length.set(static_cast<std::uint16_t>(group_bytes(group_)));
    head.sequence.set(sequence_);
    Digest message;
    append(message, bytes_of(head));
    append(message, challenge_);
    if (calculation_.exchange != nullptr) {
        append(message, calculation_.exchange->public_value());
    }
    return message;
}

Digest DhChap::success_message() const {
    auth::Success1 head{};
    head.header = header(auth::kDhChap, auth::kSuccess1);
    head.hash_length = static_cast<std::uint8_t>(hash_bytes(hash_));
    head.response_valid = own_response_.empty() ? 0 : 1;
    Digest message;
    append(message, bytes_of(head));
    append(message, own_response_);
    return message;
}

Digest DhChap::failure_message() const {
    const auth::Failed message{header(auth::kCommon, auth::kFailure1), auth::Failed::kAuthenticationFailure,
                               static_cast<std::uint8_t>(why_)};
    Digest bytes;
    append(bytes, bytes_of(message));
    return bytes;
}

Digest DhChap::due_message() const {
    switch (step_) {
        case Step::Challenge:
            return challenge_message();
        case Step::Success1:
            return success_message();
        case Step::Failure1:
            return failure_message();
        default:
            return {};
    }
}

Digest DhChap::next(std::size_t room) {
    Digest message = due_message();
    if (message.empty() || message.size() > room) {
        return {};
    }
    if (step_ == Step::Challenge) {
        step_ = Step::Reply;
    } else if (step_ == Step::Success1) {
        step_ = own_response_.empty() ? Step::Over : Step::Success2;
    } else {
        step_ = Step::Over;
        authenticated_ = false;
    }
    return message;
}

}  // namespace ernic::nvmeof
