// A dataset file: JSON array, JSON lines or text, of every record format; then tokenised.
#include "data/dataset.h"
#include "data_floor/small_tokenizer.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace loongforge;
  if (size == 0) return 0;
  static const data::Tokenizer tokenizer = test::make_tokenizer();
  const auto file =
      fuzz::folder().write(data[0] % 2 == 0 ? "data.jsonl" : "data.txt", {data + 1, size - 1});
  fuzz::expect_clean(file.string(), [&] {
    data::DatasetOptions options;
    options.path_or_name = file.string();
    options.cutoff_len = 64;
    const data::Dataset set = data::Dataset::load(options, tokenizer);
    static_cast<void>(set.counts());
  });
  return 0;
}
