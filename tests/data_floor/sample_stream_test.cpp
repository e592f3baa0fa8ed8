#include "data/sample_stream.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "data_floor/small_tokenizer.h"
#include "support/expect_error.h"

namespace loongforge::data {
namespace {

using test::make_tokenizer;
using test::TempDir;
using test::write_file;

// Files "0", "1", ... of texts "a0", "b0", ...: a letter for the sample, a digit for the file.
struct Files {
  TempDir dir;
  Tokenizer tokenizer = make_tokenizer();
  std::vector<std::string> names;
  explicit Files(const std::vector<size_t>& sizes) {
    for (size_t d = 0; d < sizes.size(); ++d) {
      std::string lines;
      for (size_t i = 0; i < sizes[d]; ++i)
        lines +=
            std::string("{\"text\":\"") + static_cast<char>('A' + i) + std::to_string(d) + "\"}\n";
      names.push_back((dir / (std::to_string(d) + ".jsonl")).string());
      write_file(names.back(), lines);
    }
  }
  SampleStream stream(const MixRule& mix, uint64_t held = 0, int64_t max_samples = 0) const {
    return SampleStream(names, {.max_samples = max_samples}, mix, held, tokenizer);
  }
  std::string take(SampleStream& stream, size_t n) const {
    std::string text;
    Sample sample;
    for (size_t i = 0; i < n; ++i) {
      stream.next(sample);
      text += tokenizer.decode(std::span<const int32_t>(sample.ids).first(2), false) + " ";
    }
    return text;
  }
};

TEST_CASE("the first pass is the mixture of datasets that are loaded; more passes follow") {
  const std::vector<size_t> sizes = {26, 5, 9};
  const Files files(sizes);
  for (const MixStrategy strategy :
       {MixStrategy::kConcat, MixStrategy::kInterleaveUnder, MixStrategy::kInterleaveOver}) {
    for (const uint64_t seed : {1, 2, 3, 4, 5}) {
      const MixRule mix{strategy, {5, 1, 2}, seed};
      std::string expected;
      const auto picks = mix_datasets(sizes, mix);
      for (const MixPick& pick : picks)
        expected += static_cast<char>('A' + pick.sample) + std::to_string(pick.dataset) + " ";
      SampleStream stream = files.stream(mix);
      CHECK(files.take(stream, picks.size()) == expected);
      CHECK(stream.place().get_int("pass", -1) == 0);
      files.take(stream, 1);
      CHECK(stream.place().get_int("pass", -1) == 1);
      if (strategy == MixStrategy::kConcat) {
        files.take(stream, picks.size() - 1);
        CHECK(files.take(stream, picks.size()) == expected);
      }
    }
  }
}

TEST_CASE("a stream goes on from every place, however it was written down") {
  const Files files({7, 3});
  for (const MixStrategy strategy :
       {MixStrategy::kConcat, MixStrategy::kInterleaveUnder, MixStrategy::kInterleaveOver}) {
    const MixRule mix{strategy, {}, 9};
    SampleStream whole = files.stream(mix, 2);
    std::vector<std::string> places, samples;
    for (int i = 0; i < 40; ++i) {
      places.push_back(whole.place().dump());
      samples.push_back(files.take(whole, 1));
    }
    for (size_t p = 0; p < places.size(); ++p) {
      SampleStream other = files.stream(mix, 2);
      other.go_to(support::Json::parse(places[p], "state"), "state");
      for (size_t i = p; i < samples.size(); ++i) REQUIRE(files.take(other, 1) == samples[i]);
    }
  }
}

TEST_CASE("what is held out comes from the beginning of each file, and never again") {
  const Files files({6, 4});
  SampleStream stream = files.stream({}, 3);
  REQUIRE(stream.held().size() == 3);
  CHECK(stream.held()[0].ids[0] / kIdScale == 'A');
  CHECK(stream.held()[1].ids[0] / kIdScale == 'B');
  CHECK(stream.held()[2].ids[1] / kIdScale == '1');
  CHECK(files.take(stream, 8) == "C0 D0 E0 F0 B1 C1 D1 C0 ");
  LF_CHECK_ERROR(files.stream({}, 30), ErrorCode::kUsage, "it has 6 samples; hold out fewer");
  LF_CHECK_ERROR(files.stream({}, 8), ErrorCode::kUsage, "1.jsonl: it has 4 samples");
  LF_CHECK_ERROR(files.stream({}, 8, 4), ErrorCode::kUsage, "0.jsonl: it has 4 samples");
}

TEST_CASE("max_samples counts for each file and pass") {
  const Files files({6, 4});
  SampleStream stream = files.stream({}, 0, 2);
  CHECK(files.take(stream, 6) == "A0 B0 A1 B1 A0 B0 ");
}

TEST_CASE("a place of another run is refused") {
  const Files two({6, 4}), one({6});
  const auto place = two.stream({}).place();
  SampleStream stream = one.stream({});
  LF_CHECK_ERROR(stream.go_to(place, "state"), ErrorCode::kBadData, "other datasets");
  support::Json wrong = one.stream({}).place();
  wrong.set("draws", -1);
  LF_CHECK_ERROR(stream.go_to(wrong, "state"), ErrorCode::kBadData, "\"draws\" is negative");
}

TEST_CASE("the hash follows the files' bytes") {
  const Files files({6, 4});
  const uint32_t before = files.stream({}).content_hash();
  CHECK(files.stream({}).content_hash() == before);
  write_file(files.names[1], "{\"text\":\"other\"}\n");
  CHECK(files.stream({}).content_hash() != before);
}

}  // namespace
}  // namespace loongforge::data
