#include "train/batch_source.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "data_floor/small_tokenizer.h"
#include "support/expect_error.h"

namespace loongforge::train {
namespace {

using test::make_tokenizer;
using test::TempDir;
using test::write_file;

// n texts of 1 to 7 letters; the first letter tells which one.
struct Stream {
  TempDir dir;
  data::Tokenizer tokenizer = make_tokenizer();
  std::string file = (dir / "d.jsonl").string();
  explicit Stream(size_t n) {
    std::string lines;
    for (size_t i = 0; i < n; ++i)
      lines += "{\"text\":\"" + std::string(1 + i * 3 % 7, static_cast<char>('A' + i)) + "\"}\n";
    write_file(file, lines);
  }
  data::SampleStream open() const {
    return data::SampleStream({file}, {.cutoff_len = 16}, {}, 0, tokenizer);
  }
};

std::string letters(const graph::Batch& batch) {
  std::string text;
  for (const auto& document : batch.documents)
    text += static_cast<char>(batch.ids[static_cast<size_t>(document.row)] / data::kIdScale);
  return text;
}

std::string step_of(BatchSource& source, int64_t step) {
  std::string text;
  const int64_t n = source.begin_step(step);
  for (int64_t i = 0; i < n; ++i) text += (i > 0 ? "," : "") + letters(source.batch(i));
  return text;
}

TEST_CASE("planned batches are the plan's rows, asked for in any order of micro-batches") {
  std::vector<data::Sample> samples(5);
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].ids.assign(2 + i, static_cast<int32_t>('A' + i));
    samples[i].trained.assign(2 + i, 1);
  }
  const data::SampleSet set(data::SampleTable::of(samples));
  const auto rows = make_rows(set, false, 16);
  const StepPlan plan(5, 2, 4, 1, -1, 42);
  PlannedBatches source(set, rows, plan);
  CHECK(source.begin_step(0) == 2);
  const auto micro = plan.micro_batches(0);
  for (const int64_t i : {1, 0}) {
    std::string expected;
    for (const uint32_t r : micro[static_cast<size_t>(i)]) expected += static_cast<char>('A' + r);
    CHECK(letters(source.batch(i)) == expected);
  }
  CHECK(source.begin_step(1) == 1);
  CHECK(source.place().is_null());
}

TEST_CASE("a window is shuffled by itself, and every sample of a pass comes once") {
  const Stream files(20);
  data::SampleStream stream = files.open();
  StreamedBatches source(stream, {.buffer_samples = 10, .micro_rows = 2, .rows_per_step = 5});
  std::string pass;
  for (int64_t step = 0; step < 4; ++step) {
    const std::string text = step_of(source, step);
    CHECK(std::count(text.begin(), text.end(), ',') == 2);  // 2, 2 and 1 rows
    for (const char c : text)
      if (c != ',') pass += c;
  }
  CHECK(pass.substr(0, 10) != "ABCDEFGHIJ");
  std::string first = pass.substr(0, 10), second = pass.substr(10);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  CHECK(first == "ABCDEFGHIJ");
  CHECK(second == "KLMNOPQRST");
  CHECK(step_of(source, 4) + step_of(source, 5) !=
        pass);  // the next pass has windows, and so an order, of its own
}

TEST_CASE("a stream of batches goes on from every step, packed or not") {
  const Stream files(17);
  for (const bool packing : {false, true}) {
    for (const int64_t buffer : {1, 4, 7, 40}) {
      const StreamShape shape{buffer, 2, 5, packing, 16, 7};
      data::SampleStream stream = files.open();
      StreamedBatches whole(stream, shape);
      std::vector<std::string> places = {whole.place().dump()}, steps;
      for (int64_t step = 0; step < 12; ++step) {
        steps.push_back(step_of(whole, step));
        places.push_back(whole.place().dump());
      }
      for (size_t p = 0; p < steps.size(); ++p) {
        data::SampleStream again = files.open();
        StreamedBatches rest(again, shape);
        rest.go_to(support::Json::parse(places[p], "state"), "state");
        CHECK(rest.place().dump() == places[p]);
        for (size_t i = p; i < steps.size(); ++i)
          REQUIRE(step_of(rest, static_cast<int64_t>(i)) == steps[i]);
      }
    }
  }
}

TEST_CASE("a buffer that is larger than the data holds a pass, not pass after pass") {
  const Stream files(4);
  data::SampleStream stream = files.open();
  StreamedBatches source(
      stream, {.buffer_samples = int64_t{1} << 30, .rows_per_step = 4});  // would never be full
  source.read_ahead();
  std::set<std::string> orders;
  for (int64_t step = 0; step < 12; ++step) {
    std::string pass = step_of(source, step);
    std::erase(pass, ',');
    orders.insert(pass);
    std::sort(pass.begin(), pass.end());
    CHECK(pass == "ABCD");
  }
  CHECK(orders.size() > 3);  // each is shuffled anew
}

TEST_CASE("what is read ahead changes nothing, and its faults come before any step") {
  const Stream files(9);
  data::SampleStream one = files.open(), two = files.open();
  const StreamShape shape{.buffer_samples = 4, .micro_rows = 2, .rows_per_step = 3};
  StreamedBatches plain(one, shape), ahead(two, shape);
  ahead.read_ahead();
  CHECK(ahead.place().dump() == plain.place().dump());
  for (int64_t step = 0; step < 7; ++step) {
    CHECK(step_of(ahead, step) == step_of(plain, step));
    ahead.read_ahead();
    CHECK(ahead.place().dump() == plain.place().dump());
  }
  write_file(files.file, "{\"text\": \"A\"}\n{\"text\": 5}\n");
  data::SampleStream bad = files.open();
  StreamedBatches source(bad, shape);
  LF_CHECK_ERROR(source.read_ahead(), ErrorCode::kBadData, "d.jsonl");
}

TEST_CASE("a place that the data does not have is refused") {
  const Stream files(6);
  data::SampleStream stream = files.open();
  StreamedBatches source(stream, {.buffer_samples = 3, .rows_per_step = 1});
  support::Json place = source.place();
  place.set("rows_used", 4);
  LF_CHECK_ERROR(source.go_to(place, "state"), ErrorCode::kBadData, "does not have");
  place.set("rows_used", -1);
  LF_CHECK_ERROR(source.go_to(place, "state"), ErrorCode::kBadData, "does not have");
  place.erase("stream");
  LF_CHECK_ERROR(source.go_to(place, "state"), ErrorCode::kBadData, "stream");
}

}  // namespace
}  // namespace loongforge::train
