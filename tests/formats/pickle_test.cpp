#include "formats/pickle.h"

#include <doctest/doctest.h>

#include "support/expect_error.h"
#include "support/torch_zip.h"

using namespace loongforge::formats;
using namespace loongforge::test;
using loongforge::ErrorCode;
using loongforge::tensor::DType;

namespace {

PickledStateDict read(const std::string& pickle) {
  return read_state_dict(bytes_of(pickle), "f.bin");
}

void refuse(const std::string& pickle, const char* text) {
  CAPTURE(text);
  LF_CHECK_ERROR(read(pickle), ErrorCode::kBadData, text);
  LF_CHECK_ERROR(read(pickle), ErrorCode::kBadData, "f.bin");
}

std::string plain_tensor() {
  return pickle_tensor(pickle_storage("FloatStorage", "0", 6), 0, {2, 3}, {3, 1});
}

}  // namespace

TEST_CASE("pickle: a dictionary of tensors") {
  const std::string parameter =
      pickle_global("torch._utils", "_rebuild_parameter") +
      pickle_tuple({plain_tensor(), "\x88", pickle_global("collections", "OrderedDict") + ")R"}) +
      "R";
  const std::string own_type =
      pickle_global("torch._tensor", "_rebuild_from_type_v2") +
      pickle_tuple({pickle_global("torch._utils", "_rebuild_tensor_v2"),
                    pickle_global("torch", "Tensor"),
                    pickle_tuple({pickle_storage("HalfStorage", "7", 4), pickle_int(1),
                                  pickle_ints({2}), pickle_ints({2}), "\x89", "}"}),
                    "}"}) +
      "R";
  const PickledStateDict state = read(pickle_of({{"w", plain_tensor()},
                                                 {"p", parameter},
                                                 {"t", own_type},
                                                 {"n", "K\5"},
                                                 {"s", pickle_text("x")},
                                                 {"z", "N"}}));
  REQUIRE(state.tensors.size() == 3);
  CHECK(state.tensors[0].name == "w");
  CHECK(state.tensors[0].dtype == DType::kF32);
  CHECK(state.tensors[0].type == "Float");
  CHECK(state.tensors[0].storage == "0");
  CHECK(state.tensors[0].storage_elements == 6);
  CHECK(state.tensors[0].shape == std::vector<int64_t>{2, 3});
  CHECK(state.tensors[1].name == "p");
  CHECK(state.tensors[1].stride == std::vector<int64_t>{3, 1});
  CHECK(state.tensors[2].dtype == DType::kF16);
  CHECK(state.tensors[2].offset == 1);
  CHECK(state.others == std::vector<std::string>{"n", "s", "z"});
  // An ordered dictionary by REDUCE and by NEWOBJ, items one by one, _metadata by BUILD.
  for (const char* make : {")R", ")\x81"}) {
    const std::string pickle = "\x80\x02" + pickle_global("collections", "OrderedDict") + make +
                               "q\1" + pickle_text("w") + plain_tensor() + "s" + "}(" +
                               pickle_text("_metadata") + "h\1ub.";
    CHECK(read(pickle).tensors.size() == 1);
  }
}

TEST_CASE("pickle: names that are not on the list are spelled, not run") {
  for (const auto& [module, name] :
       std::vector<std::pair<std::string, std::string>>{{"os", "system"},
                                                        {"posix", "system"},
                                                        {"builtins", "eval"},
                                                        {"torch", "load"},
                                                        {"collections", "OrderedDict "},
                                                        {"torch", "UnknownStorage"},
                                                        {"torch._utils", "_rebuild_qtensor"}}) {
    refuse("\x80\x02" + pickle_global(module, name) + pickle_tuple({pickle_text("id")}) + "R.",
           ("the pickle names " + module + "." + name + ", which is not on the list").c_str());
  }
  refuse("\x80\x02" + pickle_global("o\ns", "x") + ".", "the pickle names o.s, which");
  refuse(std::string("\x80\x02") + "c" + std::string(1000, 'a'), "a name does not end");
}

TEST_CASE("pickle: every opcode that torch does not write is named") {
  const std::string used = std::string(
      "\x80\x63\x71\x72\x68\x6a\x28\x74\x85\x86\x87\x29\x7d\x5d\x58\x4a\x4b\x4d\x8a\x47\x88\x89\x4e"
      "\x73\x75\x61\x65\x62\x52\x81\x51\x2e",
      32);
  for (int opcode = 0; opcode < 256; ++opcode) {
    if (used.find(static_cast<char>(opcode)) != std::string::npos) continue;
    char text[64];
    std::snprintf(text, sizeof text, "the pickle has the opcode 0x%02x", opcode);
    refuse("\x80\x02" + std::string(1, static_cast<char>(opcode)) + "0000.", text);
  }
  refuse("\x80\x02i", "0x69 (INST)");
  refuse("\x80\x02\x93", "0x93 (STACK_GLOBAL)");
  refuse("\x80\x02\x82", "0x82 (EXT1)");
  refuse("\x80\x01.", "has pickle protocol 1");
}

TEST_CASE("pickle: machines that are asked for what is not there") {
  refuse("", "ends without STOP");
  refuse("\x80\x02.", "does not end in one value");
  refuse("\x80\x02}}.", "does not end in one value");
  refuse("\x80\x02}(.", "does not end in one value");
  refuse("\x80\x02t", "goes back to a mark that is not there");
  refuse("\x80\x02\x85", "takes a value that is not there");
  refuse("\x80\x02}(\x85", "takes a value that is not there");  // below the mark
  refuse("\x80\x02q\1", "takes a value that is not there");
  refuse("\x80\x02h\1", "recalls value 1, which was not kept");
  refuse("\x80\x02}(NNNu", "a dictionary has a key without a value");
  refuse("\x80\x02}(K\1K\1a", "what takes items is a number, not a list");
  refuse("\x80\x02K\1K\1K\1s", "what takes items is a number, not a dictionary");
  refuse("\x80\x02K\1)R", "what is called is a number, not a name");
  refuse("\x80\x02" + pickle_global("torch", "FloatStorage") + ")R", "FloatStorage is called");
  refuse("\x80\x02" + pickle_global("collections", "OrderedDict") + "(K\1tR",
         "an OrderedDict is made of arguments");
  refuse("\x80\x02" + pickle_global("torch._utils", "_rebuild_tensor_v2") + "(t\x81",
         "an object is made of _rebuild_tensor_v2");
  refuse("\x80\x02K\1}b", "state is given to a number");
  refuse("\x80\x02X\xff\xff\xff\x7f", "the pickle ends early");
  refuse(std::string("\x80\x02\x8a\x09") + std::string(9, '\1'), "an integer has 9 bytes");
  refuse("\x80\x02" + std::string(300, '('), "nested deeper than 256");
  refuse("\x80\x02" + std::string((size_t{1} << 21) + 1, ')'), "makes more than 2097152 values");
}

TEST_CASE("pickle: tensors and storages of the wrong parts") {
  const std::string rebuild = pickle_global("torch._utils", "_rebuild_tensor_v2");
  const std::string storage = pickle_storage("FloatStorage", "0", 4);
  const auto tensor = [&](const std::vector<std::string>& parts) {
    return pickle_of({{"w", rebuild + pickle_tuple(parts) + "R"}});
  };
  refuse(tensor({storage}), "a tensor has 1 arguments");
  refuse(tensor({"N", "K\1", ")", ")", "\x89", "N"}), "a tensor has no storage");
  refuse(tensor({storage, "N", ")", ")", "\x89", "N"}),
         "a tensor's offset is None, not an integer");
  refuse(tensor({storage, "K\1", "N", ")", "\x89", "N"}), "a tensor's size is None, not a tuple");
  refuse(tensor({storage, "K\1", ")", pickle_ints({1}), "\x89", "N"}),
         "a tensor's size and stride differ in length");
  refuse(tensor({storage, "K\1", pickle_ints(std::vector<int64_t>(100, 1)), ")", "\x89", "N"}),
         "has 100 dimensions");
  refuse("\x80\x02NQ", "a persistent id is None, not a tuple");
  refuse("\x80\x02)Q", "is not that of a storage");
  refuse("\x80\x02" + pickle_tuple({pickle_text("module"), "N", "N", "N", "N"}) + "Q",
         "is not that of a storage");
  refuse("\x80\x02" + pickle_storage("FloatStorage", "0", -1), "a storage's size is negative");
  refuse("\x80\x02" + pickle_storage("FloatStorage", std::string(300, 'k'), 1),
         "a storage's key has 300 bytes");
  refuse("\x80\x02" + pickle_storage("Tensor", "0", 1), "a storage has the type Tensor");
}

TEST_CASE("pickle: tops that are no state_dict") {
  refuse("\x80\x02" + plain_tensor() + ".", "f.bin: holds a tensor, not a dictionary of tensors");
  refuse("\x80\x02]" + plain_tensor() + "a.", "f.bin: holds a list, not a dictionary");
  refuse(pickle_of({{"model", "}"}}), "f.bin: model: is a dictionary, not a tensor");
  refuse(pickle_of({{"w", plain_tensor()}, {"w", plain_tensor()}}),
         "f.bin: w: the tensor's name stands twice");
  refuse("\x80\x02}K\1" + plain_tensor() + "s.",
         "a key of its dictionary is a number, not a tensor's name");
  // A list that holds itself is nothing to follow.
  refuse("\x80\x02]q\1h\1a.", "f.bin: holds a list");
}
