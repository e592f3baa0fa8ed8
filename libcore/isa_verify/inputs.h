// Operands to try: edge values of the types that an operation reads its registers as (zeros, the
// ends of every integer width, halves, subnormals, infinities, NaNs of both kinds with payloads,
// values that tie when they are rounded or narrowed, neighbours that cancel) mixed with random
// bits. Thread-safety: an Inputs object belongs to one thread. The same seed, operation and number
// give the same operands on every machine.
#pragma once

#include <cstdint>

#include "isa_verify/operation.h"

namespace loongforge::isa_verify {

class Inputs {
 public:
  Inputs(const Operation& operation, uint64_t seed);

  // The operands of the next case, immediates aside; what the row gives holds for them.
  // REQUIRES immediate, immediate2 to be those of the case.
  Operands next(int64_t immediate, int64_t immediate2);

 private:
  uint64_t random();
  uint64_t below(uint64_t n) { return random() % n; }
  Uint128 value(Type type);
  uint64_t float_value(FloatFormat format);
  Uint128 integer_value(int bits);
  void relate(Operands* operands);

  const Operation& operation_;
  uint64_t state_;
  uint64_t count_ = 0;
};

}  // namespace loongforge::isa_verify
