// Keys and values of the tokens generated so far, per attention op, for one document.
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/aligned.h"
#include "kernels/types.h"

namespace loongforge::graph {

class KvCache {
 public:
  struct Entry {
    AlignedBuffer keys, values;
  };
  KvCache(int64_t capacity, kernels::Elem elem) : capacity_(capacity), elem_(elem) {}

  int64_t capacity() const { return capacity_; }
  kernels::Elem elem() const { return elem_; }
  int64_t length() const { return length_; }  // tokens held, the same for every op
  void advance(int64_t tokens) { length_ += tokens; }
  // The entry of an op, rows of `cols` elements; made on first use.
  Entry& entry(const std::string& op, int64_t cols) {
    Entry& e = entries_[op];
    if (e.keys.size() == 0) {
      const size_t bytes = static_cast<size_t>(capacity_ * cols * kernels::elem_bytes(elem_));
      e.keys = AlignedBuffer(bytes);
      e.values = AlignedBuffer(bytes);
    }
    return e;
  }

 private:
  int64_t capacity_;
  kernels::Elem elem_;
  int64_t length_ = 0;
  std::map<std::string, Entry> entries_;
};

}  // namespace loongforge::graph
