// Random numbers from SM4 (GB/T 32907) in counter mode, addressed instead of drawn: the value at
// (stream, step, index) is a function of the seed alone, so it does not depend on how many threads
// or ranks ask, in which order, or in how many pieces.
//
// Key: the 64-bit seed, big-endian, then eight zero bytes. Counter block i of (stream, step):
// stream as 32 bits, step as 64 bits, i as 32 bits, each big-endian, in this order. The byte
// sequence of (stream, step) is the encryption of its blocks 0, 1, 2, ...: 2^36 bytes. Numbers made
// of bytes take them little-endian.
//
// Thread-safety: an object belongs to one thread at a time (it holds a cipher handle); objects of
// the same seed are equal, so each thread makes its own. Throws Error(kFailed) when libgcrypt
// offers no SM4, kUsage beyond the 2^36 bytes.
#pragma once

#include <cstdint>
#include <span>

#include "base/api.h"

namespace loongforge::support {

// Who uses which stream: a number is never used for two purposes.
enum Sm4Stream : uint32_t {
  kStreamShuffle = 1,   // order of samples; step = epoch
  kStreamInit = 2,      // new parameters; step = number of the tensor
  kStreamDropout = 3,   // + 16 * number of the layer's site; step = micro-batch
  kStreamRounding = 4,  // + 16 * (2 * number of the parameter + use); step = optimizer step
  kStreamSampling = 5,  // generation; step = position
  kStreamMix = 6,       // which dataset a sample comes from; step = pass over the data
  kStreamSplit = 7,     // what is held out for validation
};

class LF_API Sm4Random {
 public:
  explicit Sm4Random(uint64_t seed);
  ~Sm4Random();
  Sm4Random(const Sm4Random&) = delete;
  Sm4Random& operator=(const Sm4Random&) = delete;

  // Bytes offset, offset + 1, ... of (stream, step).
  void bytes(uint32_t stream, uint64_t step, uint64_t offset, std::span<uint8_t> out);

  // Number index takes bytes 4 * index: its upper 24 bits * 2^-24, in [0, 1).
  void uniform(uint32_t stream, uint64_t step, uint64_t index, std::span<float> out);

  // Number index takes bytes 8 * index, x: floor(x * bound / 2^64), in [0, bound). The bias is
  // below bound / 2^64.
  // REQUIRES bound >= 1.
  void below(uint32_t stream, uint64_t step, uint64_t index, uint64_t bound,
             std::span<uint64_t> out);

  // Fisher-Yates: for i = n - 1 down to 1 swaps items[i] with items[j], j in [0, i] from number n -
  // 1 - i as below().
  void shuffle(uint32_t stream, uint64_t step, std::span<uint32_t> items);
  void shuffle(uint32_t stream, uint64_t step, std::span<uint64_t> items);

 private:
  template <class T>
  void shuffle_items(uint32_t stream, uint64_t step, std::span<T> items);
  void* cipher_ = nullptr;  // gcry_cipher_hd_t
};

// One block under one key: what the test vector of the standard shows, and a check at start that
// the library works.
LF_API void sm4_encrypt_block(std::span<const uint8_t, 16> key, std::span<const uint8_t, 16> in,
                              std::span<uint8_t, 16> out);

}  // namespace loongforge::support
