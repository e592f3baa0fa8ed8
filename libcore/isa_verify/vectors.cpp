#include "isa_verify/vectors.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/paths.h"
#include "isa_verify/inputs.h"

namespace loongforge::isa_verify {
namespace {

using support::Json;

constexpr const char* kRegisterKeys[kRegisters] = {"d", "j", "k", "a"};
constexpr const char* kEndings[] = {"done", "illegal", "fault"};

std::string hex(const uint8_t* bytes, size_t count) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

std::string hex(const Result& bytes) { return hex(bytes.data(), bytes.size()); }

int digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

Result bytes_of_hex(const Json& value, const char* what) {
  const std::string& text = value.as_string(what);
  Result bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    const int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) break;
    bytes.push_back(static_cast<uint8_t>(high * 16 + low));
  }
  if (bytes.size() * 2 != text.size() || bytes.size() > kMemoryBytes)
    throw_bad_data("", std::string(what) + " is no string of bytes in hex");
  return bytes;
}

// False: there is no such key.
template <size_t N>
bool read_bytes(const Json& object, const char* key, std::array<uint8_t, N>* to) {
  const Json* value = object.find(key);
  if (value == nullptr) return false;
  const Result bytes = bytes_of_hex(*value, key);
  if (bytes.size() != N)
    throw_bad_data("", std::string(key) + " has another length than " + std::to_string(N));
  std::copy(bytes.begin(), bytes.end(), to->begin());
  return true;
}

// 64 bits do not fit JSON's numbers: bytes as everywhere here, lowest first.
Json word_json(uint64_t value) {
  return hex(reinterpret_cast<const uint8_t*>(&value), sizeof value);
}

bool read_word(const Json& object, const char* key, uint64_t* to) {
  std::array<uint8_t, 8> bytes{};
  if (!read_bytes(object, key, &bytes)) return false;
  *to = 0;
  for (size_t i = 0; i < 8; ++i) *to |= uint64_t{bytes[i]} << (8 * i);
  return true;
}

Json operands_json(const Operation& operation, const Operands& operands) {
  Json json = Json::object();
  for (size_t i = 0; i < kRegisters; ++i)
    json.set(kRegisterKeys[i], hex(operands.vectors[i].data(), kVectorBytes));
  if (operation.formula.target() == Target::kMemory ||
      !operation.formula.types_read(Register::kMemory).empty())
    json.set("memory", hex(operands.memory.data(), kMemoryBytes));
  json.set("general", word_json(operands.general));
  json.set("mask", word_json(operands.masks[0]));
  json.set("mask2", word_json(operands.masks[1]));
  return json;
}

SavedVector vector_of(const Json& json) {
  SavedVector vector;
  const std::string& isa = json.at("isa", "vector").as_string("isa");
  if (!kernels::parse_isa(isa.c_str(), &vector.isa) || vector.isa == kernels::Isa::kScalar)
    throw_bad_data("", "'" + isa + "' is no vector instruction set");
  vector.form = json.at("op", "vector").as_string("op");
  vector.chip = json.at("chip", "vector").as_string("chip");
  const auto note = [&](const char* key, bool present) {
    if (!present) vector.absent.emplace_back(key);
  };
  Operands& to = vector.operands;
  to.immediate = json.get_int("immediate", 0);
  to.immediate2 = json.get_int("immediate2", 0);
  for (const char* key : {"immediate", "immediate2"}) note(key, json.contains(key));
  const Json& operands = json.at("operands", "vector");
  if (!operands.is_object()) throw_bad_data("", "operands is no object");
  for (size_t i = 0; i < kRegisters; ++i)
    note(kRegisterKeys[i], read_bytes(operands, kRegisterKeys[i], &to.vectors[i]));
  note("memory", read_bytes(operands, "memory", &to.memory));
  note("general", read_word(operands, "general", &to.general));
  note("mask", read_word(operands, "mask", &to.masks[0]));
  note("mask2", read_word(operands, "mask2", &to.masks[1]));
  vector.expected = bytes_of_hex(json.at("expected", "vector"), "expected");
  if (const Json* got = json.find("got")) {
    vector.got = bytes_of_hex(*got, "got");
    return vector;
  }
  const std::string& ending = json.at("ending", "vector without got").as_string("ending");
  if (ending != kEndings[1] && ending != kEndings[2])
    throw_bad_data("", "ending is neither illegal nor fault");
  vector.ending = ending == kEndings[1] ? Ending::kIllegal : Ending::kFault;
  return vector;
}

}  // namespace

Json vector_json(const Operation& operation, const Operands& operands, const Result& expected,
                 const Execution& got, const std::string& chip) {
  Json json = Json::object();
  json.set("isa", kernels::isa_name(operation.isa));
  json.set("op", operation.form());
  if (operation.immediates[0].bits > 0) json.set("immediate", operands.immediate);
  if (operation.immediates[1].bits > 0) json.set("immediate2", operands.immediate2);
  json.set("operands", operands_json(operation, operands));
  json.set("expected", hex(expected));
  if (got.ending == Ending::kDone)
    json.set("got", hex(got.result));
  else
    json.set("ending", kEndings[static_cast<int>(got.ending)]);
  json.set("chip", chip);
  return json;
}

SavedVector parse_vector(std::string_view line, const std::string& where) {
  const Json json = Json::parse(line, where);
  SavedVector vector = support::in_file(where, [&] { return vector_of(json); });
  vector.place = where;
  return vector;
}

std::vector<SavedVector> read_vectors(const std::filesystem::path& path) {
  const std::string text = read_text(path, kMostVectorBytes);
  std::vector<SavedVector> vectors;
  size_t number = 0;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = std::string_view(text).substr(start, end - start);
    start = end + 1;
    ++number;
    if (!line.empty())
      vectors.push_back(parse_vector(line, path.string() + ":" + std::to_string(number)));
  }
  return vectors;
}

bool SavedVector::lacks(std::string_view key_name) const {
  return std::find(absent.begin(), absent.end(), key_name) != absent.end();
}

uint64_t vector_bytes(const std::vector<const Operation*>& operations, const VerifyOptions& options,
                      const std::string& chip) {
  constexpr uint64_t kDigits = 20;  // of its two immediates
  uint64_t bytes = 0;
  for (const Operation* operation : operations) {
    Inputs inputs(*operation, options.seed);
    const Operands operands = inputs.next(0, 0);
    const Execution got{Ending::kDone, reference_result(*operation, operands)};
    const Json line = vector_json(*operation, operands, got.result, got, chip);
    bytes += (line.dump().size() + 1 + kDigits) * vectors_of(*operation, options);
  }
  return bytes;
}

std::string SavedVector::key() const {
  std::string key = std::string(kernels::isa_name(isa)) + " " + form + " ";
  key += std::to_string(operands.immediate) + " " + std::to_string(operands.immediate2);
  for (const auto& vector : operands.vectors) key.append(vector.begin(), vector.end());
  key.append(operands.memory.begin(), operands.memory.end());
  for (const uint64_t word : {operands.general, operands.masks[0], operands.masks[1]})
    key += " " + std::to_string(word);
  return key;
}

namespace {

std::filesystem::path new_path(const std::filesystem::path& path) {
  if (file_exists(path, ErrorCode::kFailed) && !link_exists(path, ErrorCode::kFailed))
    throw_usage(path.string() + ": exists", "name another file, or remove this one yourself");
  return path;  // AtomicFile says what else is there
}

}  // namespace

VectorFile::VectorFile(const std::filesystem::path& path) : file_(new_path(path)) {}

void VectorFile::add(const Json& vector) {
  pending_ += vector.dump() + "\n";
  ++count_;
  if (pending_.size() > (size_t{1} << 20)) flush();
}

void VectorFile::flush() {
  file_.file().write({reinterpret_cast<const uint8_t*>(pending_.data()), pending_.size()});
  pending_.clear();
}

void VectorFile::commit() {
  flush();
  file_.commit();
}

}  // namespace loongforge::isa_verify
