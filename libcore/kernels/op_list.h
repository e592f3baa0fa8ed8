// The kernel families and the FP8 operations that they offer: what `loongforge model-inspect --ops`
// prints. Each <family>_dispatch.cpp describes its own beside the table that runs them, so that a
// row is there exactly where the function is. An operation, one direction of it in one format,
// counts one. Thread-safety: constants.
#pragma once

#include <cstdint>
#include <span>

#include "base/api.h"
#include "kernels/isa.h"

namespace loongforge::kernels {

enum class Direction : uint8_t { kNone, kForward, kBackwardInput, kBackwardWeight };
enum class OpFormat : uint8_t { kE4M3, kE5M2, kHybrid };  // hybrid: E5M2 gradients by E4M3 values

LF_API const char* direction_name(
    Direction direction) noexcept;  // "none", "forward", "backward_input", "backward_weight"
LF_API const char* format_name(OpFormat format) noexcept;  // "e4m3", "e5m2", "hybrid"

// Sets of them, one bit each.
constexpr uint8_t one(Direction d) { return static_cast<uint8_t>(1u << static_cast<int>(d)); }
constexpr uint8_t one(OpFormat f) { return static_cast<uint8_t>(1u << static_cast<int>(f)); }
inline constexpr uint8_t kUndirected = one(Direction::kNone);
inline constexpr uint8_t kForwardOnly = one(Direction::kForward);
inline constexpr uint8_t kThroughLinear = one(Direction::kForward) | one(Direction::kBackwardInput);
inline constexpr uint8_t kBackwards =
    one(Direction::kBackwardInput) | one(Direction::kBackwardWeight);
inline constexpr uint8_t kAllDirections = kThroughLinear | one(Direction::kBackwardWeight);
inline constexpr uint8_t kE4M3Only = one(OpFormat::kE4M3);
inline constexpr uint8_t kBothFormats = one(OpFormat::kE4M3) | one(OpFormat::kE5M2);
inline constexpr uint8_t kAllFormats = kBothFormats | one(OpFormat::kHybrid);

// A function of a family, for some directions and formats.
struct OpRow {
  const char* name;
  const char* what;
  uint8_t directions;
  uint8_t formats;
  bool (*in_table)(Isa isa) noexcept;  // the table of a compiled ISA has it
};

struct Family {
  const char* name;
  Isa (*table_for)(Isa active) noexcept;  // whose table runs while `active` is the active one
  std::span<const OpRow> fp8;
};
LF_API std::span<const Family* const> families() noexcept;

struct Op {
  const Family* family;
  const OpRow* row;
  Direction direction;
  OpFormat format;
};
LF_API std::span<const Op> fp8_ops() noexcept;

}  // namespace loongforge::kernels
