// Oracle: ids that SentencePiece 0.2.3 gives with the same model.
#include "support/sentencepiece.h"

#include "base/error.h"
#include "data_floor/golden.h"

namespace loongforge::support {
namespace {

TEST_CASE("ids and the text that each stands for") {
  const SentencePiece sp(read_text(test::golden("spm_bpe.model")), "m");
  for (const Json& line : test::read_lines(test::golden("spm_bpe.jsonl"))) {
    const std::string& text = line.at("text").as_string();
    CAPTURE(text);
    std::vector<int32_t> ids;
    sp.encode(text, ids);
    CHECK(ids == test::ids_of(line, "ids"));
    std::vector<SentencePiece::Piece> pieces;
    sp.encode(text, pieces);
    REQUIRE(pieces.size() == ids.size());
    size_t at = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      CHECK(pieces[i].id == ids[i]);
      CHECK(pieces[i].begin == at);
      at = pieces[i].end;
    }
    CHECK(at == text.size());
  }
}

TEST_CASE("what the library refuses is an error with its reason") {
  const Error e = test::error_of([] { SentencePiece("no model", "x.model"); });
  CHECK(e.code() == ErrorCode::kBadData);
  CHECK(e.where() == "x.model");
  CHECK(test::has(e.message(), "the SentencePiece model is refused"));
}

}  // namespace
}  // namespace loongforge::support
