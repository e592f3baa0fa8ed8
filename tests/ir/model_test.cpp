#include "ir/model.h"

#include <doctest/doctest.h>

#include "ir/layout.h"
#include "support/expect_error.h"

using namespace loongforge;
using tensor::DType;

TEST_CASE("rows are indices of the first dimension, strides multiples of 32") {
  ir::TensorEntry entry;
  entry.dtype = DType::kBF16;
  CHECK(entry.rows() == 1);  // rank 0
  CHECK(entry.cols() == 1);
  CHECK(entry.row_stride() == 32);
  entry.shape = {40};
  CHECK(entry.rows() == 1);
  CHECK(entry.cols() == 40);
  CHECK(entry.row_bytes() == 80);
  CHECK(entry.row_stride() == 96);
  entry.shape = {7, 3, 5, 2};
  CHECK(entry.rows() == 7);
  CHECK(entry.cols() == 30);
  entry.dtype = DType::kE4M3LA;
  entry.shape = {2, 64};
  CHECK(entry.row_stride() == 64);
}

TEST_CASE("what a tensor takes with its companions") {
  ir::TensorEntry entry;
  entry.dtype = DType::kE4M3LA;
  entry.shape = {300, 200};
  entry.block_rows = entry.block_cols = 128;
  // 300 rows of 224; 3 x 2 scales, rows padded to 32; 3 checksums in a row of 32; each from a
  // multiple of 128.
  CHECK(ir::placed_bytes(entry) == 67200 + 128 + 128);
  // A scale a row of two bytes each, and two tensors that go along.
  entry.block_rows = 1;
  entry.block_cols = 200;
  entry.scale_dtype = DType::kBF16;
  ir::TensorEntry carried[2];
  carried[0].dtype = carried[1].dtype = DType::kF32;
  carried[1].shape = {5, 3};
  CHECK(ir::placed_bytes(entry, carried) == 67200 + 300 * 32 + 128 + 128 + 256);
  ir::FilePlan plan(4096, 100'000);
  CHECK(plan.place(67456));
  CHECK(plan.place(67456));
  CHECK_FALSE(plan.place(128));
  CHECK(plan.place(1'000'000));
  CHECK(plan.files() == 3);
  CHECK(plan.total_bytes() == 3 * 4096 + 2 * 67456 + 128 + 1'000'000);
  CHECK(ir::weight_file_name(0, 12) == "weights-00001-of-00012.lir");
  CHECK(ir::weight_file_name(123455, 123456) == "weights-123456-of-123456.lir");
}

TEST_CASE("names are looked up, aliases followed") {
  ir::Model model;
  model.tensors.resize(2);
  model.tensors[0].name = "a";
  model.tensors[1].name = "b";
  model.tensors[1].alias_of = "a";
  CHECK(model.find_tensor("b") == &model.tensors[1]);
  CHECK(&model.stored_tensor("b") == &model.tensors[0]);
  CHECK(model.find_tensor("c") == nullptr);
  LF_CHECK_ERROR(model.stored_tensor("c"), ErrorCode::kBadData, "c");
}
