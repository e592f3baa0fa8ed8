// tokenizer.json: every part of the pipeline, then a text through it and back.
#include "data/tokenizer.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loongforge;
  fuzz::expect_clean("tokenizer.json", [&] {
    const data::Tokenizer tokenizer = data::Tokenizer::from_json(
        support::Json::parse(fuzz::text_of(data, size), "tokenizer.json"), support::Json(),
        support::Json(), "tokenizer.json");
    const auto ids =
        tokenizer.encode("Hello w\xC3\xB6rld, \xE4\xBD\xA0\xE5\xA5\xBD 12\n\n  <s>", true);
    static_cast<void>(tokenizer.decode(ids, false));
    static_cast<void>(tokenizer.encode_with_offsets("a b\xE2\x96\x81", false));
  });
  return 0;
}
