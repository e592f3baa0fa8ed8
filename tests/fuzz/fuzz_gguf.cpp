// A GGUF file: keys, tensor table, block-quantised data; then the tokenizer in its keys.
#include "data/tokenizer.h"
#include "formats/gguf.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loongforge;
  const auto file = fuzz::folder().write("model.gguf", {data, size});
  fuzz::expect_clean(file.string(), [&] {
    fuzz::read_all(formats::GgufFile(file));
    if (data::Tokenizer::present(file.string())) {
      const data::Tokenizer tokenizer = data::Tokenizer::load(file.string());
      const auto ids = tokenizer.encode("Hello w\xC3\xB6rld 12", true);
      static_cast<void>(tokenizer.decode(ids, true));
    }
  });
  return 0;
}
