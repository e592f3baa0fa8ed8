// W' = W + scaling * B A, in fp32, for the rows of one stripe at a time.
// Thread-safety: const members may be called from several threads.
#pragma once

#include <cstdint>
#include <vector>

#include "convert/export.h"
#include "formats/peft.h"

namespace loongforge::convert {

// A warning for each key of its configuration that is not known.
void warn_of_unknown_keys(const formats::PeftAdapter& adapter, ExportReport* report);

class LoraDelta {
 public:
  LoraDelta(const formats::PeftAdapter& adapter, const formats::PeftModule& module);
  // rows: rows [r0, r1) of W, dense.
  void add(int64_t r0, int64_t r1, float* rows) const;

 private:
  std::vector<float> a_, b_;  // [r, in], [out, r]
  int64_t r_, in_;
  float scaling_;
};

}  // namespace loongforge::convert
