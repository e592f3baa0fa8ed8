#include "data/spm_proto.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "data/byte_tokens.h"
#include "data/chars_map.h"
#include "data/vocabulary.h"
#include "support/unicode.h"

namespace loongforge::data {
namespace {

// One message of the wire format, field by field.
class WireReader {
 public:
  WireReader(std::string_view bytes, const std::string& where) : rest_(bytes), where_(where) {}

  // False at the end. Afterwards field() is set, and one of number() and bytes() by wire type.
  bool next() {
    if (rest_.empty()) return false;
    const uint64_t key = varint();
    field_ = static_cast<uint32_t>(key >> 3);
    wire_ = static_cast<uint32_t>(key & 7);
    number_ = 0;
    bytes_ = {};
    if (key >> 3 == 0 || key >> 3 > 0x1FFFFFFF) fail("a field number is out of range");
    switch (wire_) {
      case 0:
        number_ = varint();
        break;
      case 1:
        bytes_ = take(8);
        break;
      case 2:
        bytes_ = take(varint());
        break;
      case 5:
        bytes_ = take(4);
        break;
      default:
        fail("wire type " + std::to_string(wire_) + " is not supported");
    }
    return true;
  }

  uint32_t field() const { return field_; }
  uint64_t number(const char* what) const {
    require(0, what);
    return number_;
  }
  std::string_view bytes(const char* what) const {
    require(2, what);
    return bytes_;
  }
  float real(const char* what) const {
    require(5, what);
    float value;
    std::memcpy(&value, bytes_.data(), sizeof value);
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw_bad_data(where_, "is no SentencePiece model: " + why);
  }
  void require(uint32_t wire, const char* what) const {
    if (wire_ != wire) fail(std::string(what) + " has wire type " + std::to_string(wire_));
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) fail("it ends within a number");
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    fail("a number is too long");
  }
  std::string_view take(uint64_t size) {
    if (size > rest_.size())
      fail("a field of " + std::to_string(size) + " bytes, " + std::to_string(rest_.size()) +
           " are left");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  const std::string& where_;
  uint32_t field_ = 0, wire_ = 0;
  uint64_t number_ = 0;
  std::string_view bytes_;
};

// What the trainer and normalizer specifications say.
struct Settings {
  uint64_t model_type = 1;
  bool suffix = false, byte_fallback = false;
  std::string bos = "<s>", eos = "</s>", pad = "<pad>";
  std::string_view charsmap, denormalizer;
};

SpmPiece read_piece(std::string_view bytes, size_t id, const std::string& where) {
  const auto name = [&] { return "piece " + std::to_string(id); };
  SpmPiece piece;
  WireReader reader(bytes, where);
  while (reader.next()) {
    if (reader.field() == 1) piece.text = reader.bytes("a piece");
    if (reader.field() == 2) piece.score = reader.real("a score");
    if (reader.field() == 3) {
      const uint64_t type = reader.number("a type");
      if (type < 1 || type > 6)
        throw_bad_data(where, name() + " has the unknown type " + std::to_string(type));
      piece.type = static_cast<SpmType>(type);
    }
  }
  if (piece.text.empty() || piece.text.find('\0') != std::string::npos)
    throw_bad_data(where, name() + " is empty or holds a zero byte");
  if (support::find_invalid_utf8(piece.text) != support::kUtf8Valid)
    throw_bad_data(where, name() + " is not valid UTF-8");
  if (!std::isfinite(piece.score)) throw_bad_data(where, name() + " has a score that is no number");
  return piece;
}

void read_trainer(std::string_view bytes, const std::string& where, Settings& out) {
  WireReader reader(bytes, where);
  while (reader.next()) {
    if (reader.field() == 3) out.model_type = reader.number("model_type");
    if (reader.field() == 24) out.suffix = reader.number("treat_whitespace_as_suffix") != 0;
    if (reader.field() == 35) out.byte_fallback = reader.number("byte_fallback") != 0;
    if (reader.field() == 46) out.bos = reader.bytes("bos_piece");
    if (reader.field() == 47) out.eos = reader.bytes("eos_piece");
    if (reader.field() == 48) out.pad = reader.bytes("pad_piece");
  }
}

void read_normalizer(std::string_view bytes, const std::string& where, Settings& out,
                     SpmProto& proto) {
  WireReader reader(bytes, where);
  while (reader.next()) {
    if (reader.field() == 2) out.charsmap = reader.bytes("precompiled_charsmap");
    if (reader.field() == 3) proto.add_dummy_prefix = reader.number("add_dummy_prefix") != 0;
    if (reader.field() == 4)
      proto.remove_extra_whitespaces = reader.number("remove_extra_whitespaces") != 0;
    if (reader.field() == 5 && reader.number("escape_whitespaces") == 0)
      throw_bad_data(where, "escape_whitespaces false is not supported");
  }
}

std::string_view read_charsmap(std::string_view bytes, const std::string& where) {
  std::string_view charsmap;
  WireReader reader(bytes, where);
  while (reader.next())
    if (reader.field() == 2) charsmap = reader.bytes("precompiled_charsmap");
  return charsmap;
}

// Names are unique, one piece is the unknown one, byte pieces are the 256 that there are.
void check_pieces(SpmProto& proto, const Settings& settings, const std::string& where) {
  if (proto.pieces.empty() || proto.pieces.size() > static_cast<size_t>(Vocabulary::kMaxId))
    throw_bad_data(where, "a SentencePiece model of " + std::to_string(proto.pieces.size()) +
                              " pieces is not supported");
  Vocabulary names;
  names.reserve(proto.pieces.size(), 8 * proto.pieces.size());
  for (size_t i = 0; i < proto.pieces.size(); ++i) {
    const SpmPiece& piece = proto.pieces[i];
    const auto id = static_cast<int32_t>(i);
    if (!names.add(piece.text, id))
      throw_bad_data(where, "piece " + std::to_string(i) + " repeats piece " +
                                std::to_string(names.find(piece.text)));
    if (piece.type == SpmType::kUnknown) {
      if (proto.unk >= 0) throw_bad_data(where, "two pieces are the unknown one");
      proto.unk = id;
    }
    if (piece.type == SpmType::kByte && byte_of_token(piece.text) < 0)
      throw_bad_data(where, "byte piece " + std::to_string(i) + " is '" + piece.text +
                                "', not <0x00> to <0xFF>");
    if (piece.type == SpmType::kControl) {
      if (piece.text == settings.bos) proto.bos = id;
      if (piece.text == settings.eos) proto.eos = id;
      if (piece.text == settings.pad) proto.pad = id;
    }
  }
  if (proto.unk < 0) throw_bad_data(where, "no piece is the unknown one");
}

}  // namespace

SpmProto parse_spm_proto(std::string_view bytes, const std::string& where) {
  SpmProto proto;
  Settings settings;
  WireReader reader(bytes, where);
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        proto.pieces.push_back(read_piece(reader.bytes("a piece"), proto.pieces.size(), where));
        break;
      case 2:
        read_trainer(reader.bytes("trainer_spec"), where, settings);
        break;
      case 3:
        read_normalizer(reader.bytes("normalizer_spec"), where, settings, proto);
        break;
      case 5:
        settings.denormalizer = read_charsmap(reader.bytes("denormalizer_spec"), where);
        break;
      default:
        break;
    }
  }
  if (settings.model_type != 1 && settings.model_type != 2)
    throw_bad_data(where,
                   "a SentencePiece model of type " + std::to_string(settings.model_type) +
                       " is not supported",
                   "supported: 1 (unigram), 2 (BPE)");
  if (settings.suffix) throw_bad_data(where, "treat_whitespace_as_suffix is not supported");
  if (!settings.denormalizer.empty()) throw_bad_data(where, "a denormalizer is not supported");
  proto.bpe = settings.model_type == 2;
  proto.byte_fallback = settings.byte_fallback;
  check_pieces(proto, settings, where);
  if (!settings.charsmap.empty()) CharsMap::parse(settings.charsmap, where);
  return proto;
}

std::string spm_without_dummy_prefix() {
  // normalizer_spec (3) of two bytes: add_dummy_prefix (3) false.
  return {0x1A, 0x02, 0x18, 0x00};
}

std::string spm_as_characters() {
  // trainer_spec (2) of two bytes: model_type (3) is 4, characters.
  return {0x12, 0x02, 0x18, 0x04};
}

}  // namespace loongforge::data
