// Oracle: models that SentencePiece's own trainer wrote, and what its reader says of them.
#include "data/spm_proto.h"

#include <random>

#include "data_floor/golden.h"
#include "support/sentencepiece.h"

namespace loongforge::data {
namespace {

using test::has;

std::string model(const char* name) { return read_text(test::golden(name)); }

TEST_CASE("the pieces and settings of two models") {
  const SpmProto bpe = parse_spm_proto(model("spm_bpe.model"), "m");
  REQUIRE(bpe.pieces.size() == 2400);
  CHECK(bpe.bpe);
  CHECK(bpe.add_dummy_prefix);
  CHECK_FALSE(bpe.remove_extra_whitespaces);
  CHECK(bpe.unk == 0);
  CHECK(bpe.bos == 1);
  CHECK(bpe.eos == 2);
  CHECK(bpe.pad == -1);
  CHECK(bpe.pieces[3].text == "<0x00>");
  CHECK(bpe.pieces[3].type == SpmType::kByte);
  CHECK(bpe.pieces[300].type == SpmType::kNormal);
  const SpmProto unigram = parse_spm_proto(model("spm_unigram.model"), "m");
  CHECK_FALSE(unigram.bpe);
  CHECK(unigram.remove_extra_whitespaces);
}

// A message field of the wire format.
std::string field(int number, std::string_view bytes) {
  REQUIRE(bytes.size() < 128);
  return std::string({static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())}) +
         std::string(bytes);
}
std::string piece(std::string_view text, char type, std::string_view score = {"\0\0\0\0", 4}) {
  return field(1, field(1, text) + "\x15" + std::string(score) + "\x18" + std::string(1, type));
}

TEST_CASE("what is wrong in a model is named") {
  const auto fault = [](const std::string& bytes) {
    const Error e = test::error_of([&] { parse_spm_proto(bytes, "m.model"); });
    CHECK(e.code() == ErrorCode::kBadData);
    CHECK(e.where() == "m.model");
    return e.message();
  };
  const std::string unk = piece("<unk>", 2);
  CHECK(has(fault(""), "model of 0 pieces"));
  CHECK(has(fault("\x0A"), "ends within a number"));
  CHECK(has(fault("\x0A\x7Fxyz"), "a field of 127 bytes, 3 are left"));
  CHECK(has(fault("\x0B"), "wire type 3"));
  CHECK(has(fault("\x08\x01"), "a piece has wire type 0"));
  CHECK(has(fault(std::string(1, '\0')), "field number"));
  CHECK(has(fault(std::string(11, '\xFF')), "number is too long"));
  CHECK(has(fault(piece("a", 1)), "no piece is the unknown one"));
  CHECK(has(fault(unk + piece("x", 2)), "two pieces are the unknown one"));
  CHECK(has(fault(unk + piece("a", 1) + piece("a", 1)), "piece 2 repeats piece 1"));
  CHECK(has(fault(unk + piece("a", 9)), "piece 1 has the unknown type 9"));
  CHECK(has(fault(unk + piece("", 1)), "piece 1 is empty"));
  CHECK(has(fault(unk + piece(std::string_view("a\0", 2), 1)), "holds a zero byte"));
  CHECK(has(fault(unk + piece("\xFF", 1)), "piece 1 is not valid UTF-8"));
  CHECK(has(fault(unk + piece("a", 1, std::string_view("\0\0\xC0\x7F", 4))), "no number"));
  CHECK(has(fault(unk + piece("a", 6)), "byte piece 1 is 'a'"));
  CHECK(has(fault(unk + field(2, "\x18\x03")), "type 3 is not supported"));
  CHECK(has(fault(unk + field(3, field(2, "xy"))), "precompiled_charsmap is broken"));
  CHECK(has(fault(unk + field(5, field(2, "xy"))), "a denormalizer is not supported"));
  CHECK(has(fault(unk + field(3, std::string_view("\x28\0", 2))), "escape_whitespaces"));
  CHECK(parse_spm_proto(unk + piece("a", 1), "m").pieces.size() == 2);
}

TEST_CASE("a damaged model is refused, or runs") {
  const std::string good = model("spm_bpe.model");
  std::mt19937 random(11);
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    std::string bad = good.substr(0, round % 2 == 0 ? good.size() : random() % good.size());
    for (int i = 0; i < 4 && !bad.empty(); ++i)
      bad[random() % bad.size()] = static_cast<char>(random());
    try {
      parse_spm_proto(bad, "m");
      const support::SentencePiece sp(bad, "m");
      std::vector<int32_t> ids;
      sp.encode("Hello world, \xE9\xBE\x99\xE8\x8A\xAF \xF0\x9F\x98\x80", ids);
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::kBadData);
      ++refused;
    }
  }
  CHECK(refused > 100);
}

}  // namespace
}  // namespace loongforge::data
