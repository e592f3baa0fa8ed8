// Reads the pickle of a torch file (data.pkl) as data: the tables of tensors that it describes.
//
// A machine for the few opcodes that torch writes. Names of Python are compared with a short list
// of what tensors need; nothing is looked up, constructed or called, whatever the file says. Any
// other opcode or name is an error that spells it. Values live in tables that grow by at most one
// entry an opcode, nothing recurses. For the .cpp files of formats/ only. Thread-safety: pure
// function.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/api.h"
#include "tensor/dtype.h"

namespace loongforge::formats {

// A view of a storage. Only their types are known to be right: nothing has been compared with the
// file's size.
struct PickledTensor {
  std::string name;
  tensor::DType dtype;
  std::string type;     // torch's spelling of the storage: "BFloat16"
  std::string storage;  // key of the entry that holds it
  int64_t storage_elements = 0;
  int64_t offset = 0;  // in elements
  std::vector<int64_t> shape;
  std::vector<int64_t> stride;  // in elements; as long as shape
};

struct PickledStateDict {
  std::vector<PickledTensor> tensors;  // in the order of the dictionary
  std::vector<std::string> others;     // names of numbers, texts and None, which carry no weights
};

constexpr uint64_t kMaxPickleBytes = uint64_t{1} << 25;

// where: the file, for errors. kBadData Error when the bytes are no such pickle or their top is no
// dictionary of tensors. REQUIRES bytes.size() <= kMaxPickleBytes.
LF_API PickledStateDict read_state_dict(std::span<const uint8_t> bytes, const std::string& where);

}  // namespace loongforge::formats
