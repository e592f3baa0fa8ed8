#include "support/sm4.h"

#include <gcrypt.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "base/error.h"

namespace loongforge::support {
namespace {

constexpr uint64_t kBlock = 16;
constexpr uint64_t kStreamBytes = uint64_t{1} << 36;  // 2^32 blocks

[[noreturn]] void fail(const char* action, gcry_error_t error) {
  throw_failed({}, std::string("SM4: cannot ") + action + ": " + gcry_strerror(error),
               "a libgcrypt >= 1.9 with SM4 is needed, not in FIPS mode");
}

// libgcrypt wants to be told once that its set-up is over, unless the program already did.
void initialise() {
  static const bool done = [] {
    if (gcry_control(GCRYCTL_INITIALIZATION_FINISHED_P) == 0) {
      if (gcry_check_version(nullptr) == nullptr) throw_failed({}, "libgcrypt does not start");
      gcry_control(GCRYCTL_DISABLE_SECMEM, 0);
      gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
    }
    return true;
  }();
  static_cast<void>(done);
}

gcry_cipher_hd_t open_cipher(int mode, std::span<const uint8_t, 16> key) {
  initialise();
  gcry_cipher_hd_t cipher = nullptr;
  if (gcry_error_t error = gcry_cipher_open(&cipher, GCRY_CIPHER_SM4, mode, 0); error != 0) {
    fail("start the cipher", error);
  }
  if (gcry_error_t error = gcry_cipher_setkey(cipher, key.data(), key.size()); error != 0) {
    gcry_cipher_close(cipher);
    fail("set the key", error);
  }
  return cipher;
}

template <class T>
void put_be(uint8_t* out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out[i] = static_cast<uint8_t>(value >> (8 * (sizeof(T) - 1 - i)));
  }
}

template <class T>
T get_le(const uint8_t* in) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(T{in[i]} << (8 * i));
  return value;
}

uint64_t scaled(uint64_t x, uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{x} * bound) >> 64);
}

// index * width as a byte offset; one beyond the stream where that would overflow.
uint64_t offset_of(uint64_t index, uint64_t width) {
  return index > kStreamBytes / width ? kStreamBytes + 1 : index * width;
}

}  // namespace

Sm4Random::Sm4Random(uint64_t seed) {
  std::array<uint8_t, 16> key{};
  put_be(key.data(), seed);
  cipher_ = open_cipher(GCRY_CIPHER_MODE_CTR, key);
}

Sm4Random::~Sm4Random() { gcry_cipher_close(static_cast<gcry_cipher_hd_t>(cipher_)); }

void Sm4Random::bytes(uint32_t stream, uint64_t step, uint64_t offset, std::span<uint8_t> out) {
  if (out.empty()) return;
  if (offset > kStreamBytes || out.size() > kStreamBytes - offset) {
    throw_usage("random numbers: more than 2^36 bytes of one stream and step are asked for");
  }
  auto cipher = static_cast<gcry_cipher_hd_t>(cipher_);
  std::array<uint8_t, kBlock> counter;
  put_be(counter.data(), stream);
  put_be(counter.data() + 4, step);
  put_be(counter.data() + 12, static_cast<uint32_t>(offset / kBlock));
  if (gcry_error_t error = gcry_cipher_setctr(cipher, counter.data(), kBlock); error != 0) {
    fail("set the counter", error);
  }
  // Counter mode encrypts zeros to the key stream; the bytes of the first block before offset are
  // thrown away.
  std::array<uint8_t, kBlock> skipped{};
  if (size_t skip = offset % kBlock; skip != 0) {
    if (gcry_error_t error = gcry_cipher_encrypt(cipher, skipped.data(), skip, nullptr, 0);
        error != 0) {
      fail("encrypt", error);
    }
  }
  std::memset(out.data(), 0, out.size());
  if (gcry_error_t error = gcry_cipher_encrypt(cipher, out.data(), out.size(), nullptr, 0);
      error != 0) {
    fail("encrypt", error);
  }
}

void Sm4Random::uniform(uint32_t stream, uint64_t step, uint64_t index, std::span<float> out) {
  std::array<uint8_t, 4096> buffer;
  while (!out.empty()) {
    size_t n = std::min(out.size(), buffer.size() / 4);
    bytes(stream, step, offset_of(index, 4), std::span(buffer).first(4 * n));
    for (size_t i = 0; i < n; ++i) {
      out[i] = static_cast<float>(get_le<uint32_t>(buffer.data() + 4 * i) >> 8) * 0x1p-24f;
    }
    out = out.subspan(n);
    index += n;
  }
}

void Sm4Random::below(uint32_t stream, uint64_t step, uint64_t index, uint64_t bound,
                      std::span<uint64_t> out) {
  std::array<uint8_t, 4096> buffer;
  while (!out.empty()) {
    size_t n = std::min(out.size(), buffer.size() / 8);
    bytes(stream, step, offset_of(index, 8), std::span(buffer).first(8 * n));
    for (size_t i = 0; i < n; ++i) out[i] = scaled(get_le<uint64_t>(buffer.data() + 8 * i), bound);
    out = out.subspan(n);
    index += n;
  }
}

template <class T>
void Sm4Random::shuffle_items(uint32_t stream, uint64_t step, std::span<T> items) {
  std::array<uint8_t, 4096> buffer;
  constexpr uint64_t kPerRefill = buffer.size() / 8;
  for (uint64_t number = 0; number + 1 < items.size(); ++number) {
    uint64_t at = number % kPerRefill;
    if (at == 0) {
      uint64_t n = std::min<uint64_t>(kPerRefill, items.size() - 1 - number);
      bytes(stream, step, offset_of(number, 8), std::span(buffer).first(8 * n));
    }
    uint64_t i = items.size() - 1 - number;
    uint64_t j = scaled(get_le<uint64_t>(buffer.data() + 8 * at), i + 1);
    std::swap(items[i], items[j]);
  }
}

void Sm4Random::shuffle(uint32_t stream, uint64_t step, std::span<uint32_t> items) {
  shuffle_items(stream, step, items);
}

void Sm4Random::shuffle(uint32_t stream, uint64_t step, std::span<uint64_t> items) {
  shuffle_items(stream, step, items);
}

void sm4_encrypt_block(std::span<const uint8_t, 16> key, std::span<const uint8_t, 16> in,
                       std::span<uint8_t, 16> out) {
  gcry_cipher_hd_t cipher = open_cipher(GCRY_CIPHER_MODE_ECB, key);
  gcry_error_t error = gcry_cipher_encrypt(cipher, out.data(), out.size(), in.data(), in.size());
  gcry_cipher_close(cipher);
  if (error != 0) fail("encrypt", error);
}

}  // namespace loongforge::support
