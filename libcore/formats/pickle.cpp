#include "formats/pickle.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "formats/pickle_opcodes.h"
#include "support/printable.h"

namespace loongforge::formats {

using support::printable;
using tensor::DType;

namespace {

using Ref = uint32_t;  // of a Value

constexpr size_t kMaxValues = size_t{1} << 21;
constexpr size_t kMaxMarks = 256;
constexpr size_t kMaxGlobalBytes = 200;
// What many tensors may share must be short, as each takes a copy.
constexpr size_t kMaxKeyBytes = 200, kMaxRank = 64;

enum class Kind : uint8_t {
  kNone,
  kBool,
  kInt,
  kFloat,
  kText,     // index: texts_
  kTuple,    // index: sequences_
  kList,     // index: sequences_
  kDict,     // index: sequences_, keys and values in turn
  kGlobal,   // index: kGlobals
  kStorage,  // index: storages_
  kTensor,   // index: tensors_
};

constexpr const char* kKindNames[] = {"None",   "a bool",    "a number", "a number",
                                      "a text", "a tuple",   "a list",   "a dictionary",
                                      "a name", "a storage", "a tensor"};

enum class Role : uint8_t {
  kOrderedDict,
  kRebuildTensor,
  kRebuildParameter,
  kRebuildFromType,
  kType,
  kStorage
};

struct Global {
  std::string_view module, name;
  Role role;
  DType dtype = DType::kF32;  // of a storage
};

// All that a file may name.
constexpr Global kGlobals[] = {
    {"collections", "OrderedDict", Role::kOrderedDict},
    {"torch._utils", "_rebuild_tensor_v2", Role::kRebuildTensor},
    {"torch._utils", "_rebuild_parameter", Role::kRebuildParameter},
    {"torch._tensor", "_rebuild_from_type_v2", Role::kRebuildFromType},
    {"torch", "Tensor", Role::kType},
    {"torch.nn.parameter", "Parameter", Role::kType},
    {"torch", "FloatStorage", Role::kStorage, DType::kF32},
    {"torch", "HalfStorage", Role::kStorage, DType::kF16},
    {"torch", "BFloat16Storage", Role::kStorage, DType::kBF16},
    {"torch", "DoubleStorage", Role::kStorage, DType::kF64},
    {"torch", "LongStorage", Role::kStorage, DType::kI64},
    {"torch", "IntStorage", Role::kStorage, DType::kI32},
    {"torch", "ShortStorage", Role::kStorage, DType::kI16},
    {"torch", "CharStorage", Role::kStorage, DType::kI8},
    {"torch", "ByteStorage", Role::kStorage, DType::kU8},
    {"torch", "BoolStorage", Role::kStorage, DType::kBool},
};

struct Value {
  Kind kind = Kind::kNone;
  uint32_t index = 0;
  int64_t number = 0;  // kInt, kBool
};

struct Storage {
  uint32_t global = 0;
  std::string key;
  int64_t elements = 0;
};

class Machine {
 public:
  Machine(std::span<const uint8_t> bytes, const std::string& where)
      : bytes_(bytes), where_(where) {}
  PickledStateDict run();

 private:
  [[noreturn]] void fail(const std::string& what, std::string hint = {}) const {
    throw_bad_data(where_, what + " (byte " + std::to_string(opcode_at_) + " of its data.pkl)",
                   std::move(hint));
  }
  [[noreturn]] void damaged(const std::string& what) const {
    fail(what, "the file is damaged, or no torch file; fetch it again");
  }

  // The bytes.
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view take(size_t bytes) {
    if (bytes > bytes_.size() - position_) damaged("the pickle ends early");
    const std::string_view out(reinterpret_cast<const char*>(bytes_.data()) + position_, bytes);
    position_ += bytes;
    return out;
  }
  std::string_view line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + position_,
                                bytes_.size() - position_);
    const size_t end = rest.substr(0, kMaxGlobalBytes + 1).find('\n');
    if (end == std::string_view::npos) damaged("a name does not end");
    position_ += end + 1;
    return rest.substr(0, end);
  }

  // The stack.
  void push(Ref ref) { stack_.push_back(ref); }
  Ref make(Kind kind, uint32_t index, int64_t value = 0) {
    if (values_.size() >= kMaxValues)
      fail("the pickle makes more than " + std::to_string(kMaxValues) + " values");
    values_.push_back({kind, index, value});
    return static_cast<Ref>(values_.size() - 1);
  }
  Ref make_sequence(Kind kind, std::vector<Ref> items) {
    sequences_.push_back(std::move(items));
    return make(kind, static_cast<uint32_t>(sequences_.size() - 1));
  }
  Ref make_text(std::string_view text) {
    texts_.push_back(text);
    return make(Kind::kText, static_cast<uint32_t>(texts_.size() - 1));
  }
  Ref pop() {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor) damaged("the pickle takes a value that is not there");
    const Ref ref = stack_.back();
    stack_.pop_back();
    return ref;
  }
  std::vector<Ref> pop_to_mark() {
    if (marks_.empty()) damaged("the pickle goes back to a mark that is not there");
    const auto from = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
    std::vector<Ref> items(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return items;
  }
  Ref& top() {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor) damaged("the pickle takes a value that is not there");
    return stack_.back();
  }

  // Values as what they must be.
  const Value& value(Ref ref) const { return values_[ref]; }
  std::vector<Ref>& items(Ref ref, Kind kind, const char* what);
  std::string_view text(Ref ref, const char* what) const;
  int64_t integer(Ref ref, const char* what) const;
  std::vector<int64_t> integers(Ref ref, const char* what);
  const Global& global(Ref ref, const char* what) const;

  bool step(uint8_t opcode);  // false: STOP
  void step_number(uint8_t opcode);
  void step_memo(uint8_t opcode);
  void step_container(uint8_t opcode);
  void put(uint32_t key);
  void get(uint32_t key);
  void find_global();
  void load_storage();
  void set_items(Ref dict, const std::vector<Ref>& pairs);
  void build();
  Ref call(Ref callable, Ref arguments);
  Ref rebuild_tensor(const std::vector<Ref>& arguments);
  PickledStateDict state_dict(Ref top);

  std::span<const uint8_t> bytes_;
  const std::string& where_;
  size_t position_ = 0, opcode_at_ = 0;
  std::vector<Value> values_;
  std::vector<std::string_view> texts_;  // views into bytes_
  std::vector<std::vector<Ref>> sequences_;
  std::vector<Storage> storages_;
  std::vector<PickledTensor> tensors_;
  std::vector<Ref> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, Ref> memo_;
};

std::vector<Ref>& Machine::items(Ref ref, Kind kind, const char* what) {
  if (value(ref).kind != kind) {
    damaged(std::string(what) + " is " + kKindNames[static_cast<size_t>(value(ref).kind)] +
            ", not " + kKindNames[static_cast<size_t>(kind)]);
  }
  return sequences_[value(ref).index];
}

std::string_view Machine::text(Ref ref, const char* what) const {
  if (value(ref).kind != Kind::kText) {
    damaged(std::string(what) + " is " + kKindNames[static_cast<size_t>(value(ref).kind)] +
            ", not a text");
  }
  return texts_[value(ref).index];
}

int64_t Machine::integer(Ref ref, const char* what) const {
  if (value(ref).kind != Kind::kInt) {
    damaged(std::string(what) + " is " + kKindNames[static_cast<size_t>(value(ref).kind)] +
            ", not an integer");
  }
  return value(ref).number;
}

std::vector<int64_t> Machine::integers(Ref ref, const char* what) {
  const std::vector<Ref>& from = items(ref, Kind::kTuple, what);
  if (from.size() > kMaxRank)
    damaged(std::string(what) + " has " + std::to_string(from.size()) + " dimensions");
  std::vector<int64_t> out;
  for (Ref item : from) out.push_back(integer(item, what));
  return out;
}

const Global& Machine::global(Ref ref, const char* what) const {
  if (value(ref).kind != Kind::kGlobal) {
    damaged(std::string(what) + " is " + kKindNames[static_cast<size_t>(value(ref).kind)] +
            ", not a name");
  }
  return kGlobals[value(ref).index];
}

void Machine::put(uint32_t key) { memo_[key] = top(); }

void Machine::get(uint32_t key) {
  const auto found = memo_.find(key);
  if (found == memo_.end())
    damaged("the pickle recalls value " + std::to_string(key) + ", which was not kept");
  push(found->second);
}

void Machine::find_global() {
  const std::string_view module = line(), name = line();
  for (size_t i = 0; i < std::size(kGlobals); ++i) {
    if (kGlobals[i].module == module && kGlobals[i].name == name) {
      push(make(Kind::kGlobal, static_cast<uint32_t>(i)));
      return;
    }
  }
  fail("the pickle names " + printable(module, 80) + "." + printable(name, 80) +
           ", which is not on the list of what tensors need; nothing was run",
       "a file of plain tensors can be read: save the model's state_dict(), best with "
       "safe_serialization=True");
}

// ('storage', type, key, location, elements)
void Machine::load_storage() {
  const std::vector<Ref>& id = items(pop(), Kind::kTuple, "a persistent id");
  if (id.size() != 5 || text(id[0], "a persistent id's kind") != "storage")
    damaged("a persistent id is not that of a storage");
  const Global& type = global(id[1], "a storage's type");
  if (type.role != Role::kStorage) damaged("a storage has the type " + std::string(type.name));
  Storage storage;
  storage.global = value(id[1]).index;
  storage.key = text(id[2], "a storage's key");
  if (storage.key.size() > kMaxKeyBytes)
    damaged("a storage's key has " + std::to_string(storage.key.size()) + " bytes");
  text(id[3], "a storage's location");
  storage.elements = integer(id[4], "a storage's size");
  if (storage.elements < 0) damaged("a storage's size is negative");
  storages_.push_back(std::move(storage));
  push(make(Kind::kStorage, static_cast<uint32_t>(storages_.size() - 1)));
}

void Machine::set_items(Ref dict, const std::vector<Ref>& pairs) {
  if (pairs.size() % 2 != 0) damaged("a dictionary has a key without a value");
  std::vector<Ref>& to = items(dict, Kind::kDict, "what takes items");
  to.insert(to.end(), pairs.begin(), pairs.end());
}

// State that torch attaches to a dictionary or tensor (_metadata, attributes): of no meaning here.
void Machine::build() {
  pop();
  const Kind kind = value(top()).kind;
  if (kind != Kind::kDict && kind != Kind::kTensor)
    damaged(std::string("state is given to ") + kKindNames[static_cast<size_t>(kind)]);
}

// (storage, offset, size, stride, requires_grad, hooks[, metadata])
Ref Machine::rebuild_tensor(const std::vector<Ref>& arguments) {
  if (arguments.size() != 6 && arguments.size() != 7)
    damaged("a tensor has " + std::to_string(arguments.size()) + " arguments");
  if (value(arguments[0]).kind != Kind::kStorage) damaged("a tensor has no storage");
  const Storage& storage = storages_[value(arguments[0]).index];
  PickledTensor tensor;
  tensor.dtype = kGlobals[storage.global].dtype;
  tensor.type = kGlobals[storage.global].name.substr(
      0, kGlobals[storage.global].name.size() - std::strlen("Storage"));
  tensor.storage = storage.key;
  tensor.storage_elements = storage.elements;
  tensor.offset = integer(arguments[1], "a tensor's offset");
  tensor.shape = integers(arguments[2], "a tensor's size");
  tensor.stride = integers(arguments[3], "a tensor's stride");
  if (tensor.shape.size() != tensor.stride.size())
    damaged("a tensor's size and stride differ in length");
  tensors_.push_back(std::move(tensor));
  return make(Kind::kTensor, static_cast<uint32_t>(tensors_.size() - 1));
}

Ref Machine::call(Ref callable, Ref arguments_ref) {
  const Global& what = global(callable, "what is called");
  const std::vector<Ref>& arguments = items(arguments_ref, Kind::kTuple, "a list of arguments");
  const auto tensor_of = [&](Ref ref) {
    if (value(ref).kind != Kind::kTensor) damaged("a parameter holds no tensor");
    return ref;
  };
  switch (what.role) {
    case Role::kOrderedDict:
      if (!arguments.empty()) damaged("an OrderedDict is made of arguments");
      return make_sequence(Kind::kDict, {});
    case Role::kRebuildTensor:
      return rebuild_tensor(arguments);
    case Role::kRebuildParameter:  // (tensor, requires_grad, hooks)
      if (arguments.size() != 3)
        damaged("a parameter has " + std::to_string(arguments.size()) + " arguments");
      return tensor_of(arguments[0]);
    case Role::kRebuildFromType:  // (function, type, its arguments, state)
      if (arguments.size() != 4 ||
          global(arguments[0], "what is called").role != Role::kRebuildTensor ||
          global(arguments[1], "a tensor's type").role != Role::kType) {
        damaged("a tensor of a type of its own cannot be read");
      }
      return rebuild_tensor(items(arguments[2], Kind::kTuple, "a list of arguments"));
    default:
      damaged(std::string(what.name) + " is called");
  }
}

void Machine::step_number(uint8_t opcode) {
  switch (opcode) {
    case op::kBinInt:
      return push(make(Kind::kInt, 0, number<int32_t>()));
    case op::kBinInt1:
      return push(make(Kind::kInt, 0, number<uint8_t>()));
    case op::kBinInt2:
      return push(make(Kind::kInt, 0, number<uint16_t>()));
    case op::kBinFloat:  // its value is of no use here
      take(8);
      return push(make(Kind::kFloat, 0));
    case op::kLong1: {
      const std::string_view digits = take(number<uint8_t>());
      if (digits.size() > 8) damaged("an integer has " + std::to_string(digits.size()) + " bytes");
      uint64_t bits = !digits.empty() && (digits.back() & 0x80) != 0 ? ~uint64_t{0} : 0;
      std::memcpy(&bits, digits.data(), digits.size());
      return push(make(Kind::kInt, 0, static_cast<int64_t>(bits)));
    }
    case op::kNone:
      return push(make(Kind::kNone, 0));
    default:  // NEWTRUE, NEWFALSE
      return push(make(Kind::kBool, 0, opcode == op::kNewTrue));
  }
}

void Machine::step_memo(uint8_t opcode) {
  switch (opcode) {
    case op::kBinPut:
      return put(number<uint8_t>());
    case op::kLongBinPut:
      return put(number<uint32_t>());
    case op::kBinGet:
      return get(number<uint8_t>());
    default:  // LONG_BINGET
      return get(number<uint32_t>());
  }
}

void Machine::step_container(uint8_t opcode) {
  const auto last = [this](size_t count) {
    std::vector<Ref> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  };
  const auto append = [this](const std::vector<Ref>& more) {
    std::vector<Ref>& list = items(top(), Kind::kList, "what takes items");
    list.insert(list.end(), more.begin(), more.end());
  };
  switch (opcode) {
    case op::kMark:
      if (marks_.size() >= kMaxMarks)
        fail("the pickle is nested deeper than " + std::to_string(kMaxMarks));
      return marks_.push_back(stack_.size());
    case op::kEmptyTuple:
      return push(make_sequence(Kind::kTuple, {}));
    case op::kEmptyList:
      return push(make_sequence(Kind::kList, {}));
    case op::kEmptyDict:
      return push(make_sequence(Kind::kDict, {}));
    case op::kTuple:
      return push(make_sequence(Kind::kTuple, pop_to_mark()));
    case op::kTuple1:
    case op::kTuple2:
    case op::kTuple3:
      return push(make_sequence(Kind::kTuple, last(size_t{1} + opcode - op::kTuple1)));
    case op::kAppend:
      return append(last(1));
    case op::kAppends:
      return append(pop_to_mark());
    case op::kSetItem: {
      const std::vector<Ref> pair = last(2);
      return set_items(top(), pair);
    }
    default: {  // SETITEMS
      const std::vector<Ref> pairs = pop_to_mark();
      return set_items(top(), pairs);
    }
  }
}

bool Machine::step(uint8_t opcode) {
  switch (opcode) {
    case op::kProto: {
      const auto version = number<uint8_t>();
      if (version < 2 || version > 5) damaged("has pickle protocol " + std::to_string(version));
      return true;
    }
    case op::kStop:
      return false;
    case op::kGlobal:
      find_global();
      return true;
    case op::kBinPersId:
      load_storage();
      return true;
    case op::kBuild:
      build();
      return true;
    case op::kReduce:
    case op::kNewObj: {
      const Ref arguments = pop(), callable = pop();
      if (opcode == op::kNewObj && global(callable, "what is made").role != Role::kOrderedDict)
        damaged("an object is made of " + std::string(global(callable, "what is made").name));
      push(call(callable, arguments));
      return true;
    }
    case op::kBinUnicode:
      push(make_text(take(number<uint32_t>())));
      return true;
    case op::kBinPut:
    case op::kLongBinPut:
    case op::kBinGet:
    case op::kLongBinGet:
      step_memo(opcode);
      return true;
    case op::kBinInt:
    case op::kBinInt1:
    case op::kBinInt2:
    case op::kBinFloat:
    case op::kLong1:
    case op::kNone:
    case op::kNewTrue:
    case op::kNewFalse:
      step_number(opcode);
      return true;
    case op::kMark:
    case op::kEmptyTuple:
    case op::kEmptyList:
    case op::kEmptyDict:
    case op::kTuple:
    case op::kTuple1:
    case op::kTuple2:
    case op::kTuple3:
    case op::kAppend:
    case op::kAppends:
    case op::kSetItem:
    case op::kSetItems:
      step_container(opcode);
      return true;
    default:
      fail("the pickle has the opcode " + pickle_opcode_name(opcode) +
               ", which no file of plain tensors has",
           "save the model's state_dict() again, best with safe_serialization=True");
  }
}

PickledStateDict Machine::state_dict(Ref top) {
  if (value(top).kind != Kind::kDict) {
    throw_bad_data(where_,
                   std::string("holds ") + kKindNames[static_cast<size_t>(value(top).kind)] +
                       ", not a dictionary of tensors",
                   "save the model's state_dict()");
  }
  PickledStateDict out;
  std::unordered_set<std::string_view> seen;
  const std::vector<Ref>& pairs = sequences_[value(top).index];
  for (size_t i = 0; i < pairs.size(); i += 2) {
    if (value(pairs[i]).kind != Kind::kText) {
      throw_bad_data(where_,
                     std::string("a key of its dictionary is ") +
                         kKindNames[static_cast<size_t>(value(pairs[i]).kind)] +
                         ", not a tensor's name",
                     "save the model's state_dict()");
    }
    const std::string_view name = texts_[value(pairs[i]).index];
    const std::string where = where_ + ": " + printable(name);
    if (!seen.insert(name).second) throw_bad_data(where, "the tensor's name stands twice");
    const Value& held = value(pairs[i + 1]);
    if (held.kind == Kind::kTensor) {
      out.tensors.push_back(tensors_[held.index]);
      out.tensors.back().name = name;
    } else if (held.kind <= Kind::kText) {
      out.others.emplace_back(name);
    } else {
      throw_bad_data(
          where, std::string("is ") + kKindNames[static_cast<size_t>(held.kind)] + ", not a tensor",
          "this is no plain state_dict: save model.state_dict() itself");
    }
  }
  return out;
}

PickledStateDict Machine::run() {
  for (;;) {
    opcode_at_ = position_;
    if (position_ == bytes_.size()) damaged("the pickle ends without STOP");
    if (!step(bytes_[position_++])) break;
  }
  if (!marks_.empty() || stack_.size() != 1) damaged("the pickle does not end in one value");
  return state_dict(stack_[0]);
}

}  // namespace

PickledStateDict read_state_dict(std::span<const uint8_t> bytes, const std::string& where) {
  return Machine(bytes, where).run();
}

}  // namespace loongforge::formats
