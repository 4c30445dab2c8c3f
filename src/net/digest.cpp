// SPDX-License-Identifier: MIT
#include "net/digest.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>

namespace ernic::net {

std::string PayloadDigest::add(const mem::SpanList& payload, std::size_t size) {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
    std::array<unsigned char, EVP_MAX_MD_SIZE> raw{};
    unsigned int length = 0;
    bool ok = context && EVP_DigestInit_ex(context.get(), EVP_md5(), nullptr) == 1;
    std::size_t left = size;
    for (const mem::SpanList::Piece& piece : payload) {
        const std::size_t part = std::min(piece.size, left);
        ok = ok && EVP_DigestUpdate(context.get(), piece.data, part) == 1;
        left -= part;
    }
    if (!ok || EVP_DigestFinal_ex(context.get(), raw.data(), &length) != 1) {
        if (!refused_) {
            refused_ = true;
            log_.error("the OpenSSL library refuses MD5, so there are no digests");
        }
        return {};
    }
    std::string hex;
    for (unsigned int i = 0; i < length; ++i) {
        hex += fmt::format("{:02x}", raw[i]);
    }
    log_.info("payload {} bytes={} md5={}", ++count_, size, hex);
    return hex;
}

}  // namespace ernic::net
