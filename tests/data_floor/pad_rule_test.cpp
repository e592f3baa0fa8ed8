// The rule as DESIGN 5 states it, case by case.
#include "data/tokenizer.h"
#include "data_floor/golden.h"

namespace loongforge::data {
namespace {

using std::nullopt;

TEST_CASE("where only one says it, that one counts; equal ones agree; the flag wins") {
  CHECK(resolve_pad_id(3, nullopt, true, nullopt, 2) == 3);
  CHECK(resolve_pad_id(nullopt, 4, true, nullopt, 2) == 4);
  CHECK(resolve_pad_id(4, 4, true, nullopt, 2) == 4);
  CHECK(resolve_pad_id(3, 4, true, 9, 2) == 9);
  CHECK(resolve_pad_id(nullopt, nullopt, true, 9, 2) == 9);
  CHECK(resolve_pad_id(nullopt, nullopt, false, nullopt, 2) == nullopt);
  CHECK(resolve_pad_id(3, nullopt, false, nullopt, nullopt) == 3);
}

TEST_CASE("a contradiction, or nothing with a tokenizer present, is the named error") {
  Error e = test::error_of([] { resolve_pad_id(3, 4, true, nullopt, 2); });
  CHECK(e.message() == "Tokenization error: pad_token_id mismatch between config and tokenizer");
  CHECK(test::has(e.hint(), "--pad_token_id 2 (the eos id)"));
  CHECK(test::has(e.hint(), "--tokenizer_path"));
  CHECK(test::has(e.hint(), "config says 3"));
  e = test::error_of([] { resolve_pad_id(nullopt, nullopt, true, nullopt, nullopt); });
  CHECK(e.message() == "Tokenization error: pad_token_id mismatch between config and tokenizer");
  CHECK(test::has(e.hint(), "--pad_token_id"));
}

}  // namespace
}  // namespace loongforge::data
