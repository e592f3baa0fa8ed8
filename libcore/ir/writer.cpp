#include "ir/writer.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "ir/layout.h"
#include "ir/model_json.h"
#include "ir/validate.h"

namespace loongforge::ir {
namespace {

constexpr uint64_t kPadBufferBytes = 1 << 20;
// Written bytes are pushed to the disk in pieces of this size while the next are made, so that the
// sync at the end is short.
constexpr uint64_t kWritebackBytes = 32 << 20;

void append_le(std::vector<uint8_t>* bytes, uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes->push_back(static_cast<uint8_t>(value >> (8 * i)));
}

std::string part_name(int64_t index) { return "weights-" + std::to_string(index) + ".part"; }

}  // namespace

std::string weight_file_name(int64_t index, int64_t count) {
  const auto five = [](int64_t number) {
    const std::string digits = std::to_string(number);
    return digits.size() < 5 ? std::string(5 - digits.size(), '0') + digits : digits;
  };
  return "weights-" + five(index + 1) + "-of-" + five(count) + ".lir";
}

uint64_t placed_bytes(const TensorEntry& entry, std::span<const TensorEntry> carried) {
  const uint64_t rows = static_cast<uint64_t>(entry.rows());
  uint64_t total = round_up(rows * entry.row_stride(), kTensorAlignment);
  if (entry.block_rows > 0) {
    const uint64_t stride =
        round_up(static_cast<uint64_t>(ceil_div(entry.cols(), entry.block_cols)) *
                     tensor::dtype_bytes(entry.scale_dtype),
                 kRowAlignment);
    total += round_up(static_cast<uint64_t>(ceil_div(entry.rows(), entry.block_rows)) * stride,
                      kTensorAlignment);
  }
  for (const TensorEntry& each : carried) {
    total += round_up(static_cast<uint64_t>(each.rows()) * each.row_stride(), kTensorAlignment);
  }
  const uint64_t sums =
      round_up(static_cast<uint64_t>(ceil_div(entry.rows(), kCrcRows)) * 4, kRowAlignment);
  return total + round_up(sums, kTensorAlignment);
}

struct Writer::Impl {
  FolderWriter folder;
  uint64_t page;
  FilePlan plan;
  std::vector<TensorEntry> tensors;
  std::vector<int64_t> file_of;  // per tensor; -1 for aliases
  std::optional<File> file;
  int64_t files = 0;
  uint64_t position = 0, flushed = 0;  // of the current file

  // The tensor under way.
  bool open = false;
  TensorEntry entry;
  int64_t rows_written = 0;
  uint32_t crc = 0;  // of the rows of the current group of 128
  std::vector<uint32_t> sums;
  std::vector<uint8_t> scales;
  struct Carried {
    TensorEntry entry;
    std::vector<uint8_t> bytes;
  };
  std::vector<Carried> carried;
  std::vector<uint8_t> padded;

  Impl(const std::filesystem::path& path, bool overwrite, uint64_t page_bytes, uint64_t max_bytes)
      : folder(path, overwrite, kModelFile), page(page_bytes), plan(page_bytes, max_bytes) {}

  std::string where() const { return folder.final_path().string() + ": " + entry.name; }

  void put(std::span<const uint8_t> bytes) {
    file->write(bytes);
    position += bytes.size();
    if (position - flushed >= kWritebackBytes) {
      // Only a hint: a failure shows again in sync().
      ::sync_file_range(file->fd(), static_cast<off64_t>(flushed),
                        static_cast<off64_t>(position - flushed), SYNC_FILE_RANGE_WRITE);
      flushed = position;
    }
  }

  void pad_to(uint64_t multiple) {
    static constexpr uint8_t kZeros[kTensorAlignment] = {};
    uint64_t missing = round_up(position, multiple) - position;
    while (missing > 0) {
      const uint64_t count = std::min<uint64_t>(missing, sizeof(kZeros));
      put({kZeros, static_cast<size_t>(count)});
      missing -= count;
    }
  }

  void end_file() {
    if (!file) return;
    pad_to(kTensorAlignment);
    file->close();
    file.reset();
  }

  void begin_file() {
    end_file();
    file.emplace(File::create(folder.temporary() / part_name(files++)));
    position = flushed = 0;
    std::vector<uint8_t> header(kFileMagic.begin(), kFileMagic.end());
    append_le(&header, kVersionMajor, 4);
    append_le(&header, kVersionMinor, 4);
    append_le(&header, page, 8);
    put(header);
    pad_to(page);
  }

  // A companion of the tensor that was just written, in the same file.
  void put_companion(const std::string& name, tensor::DType dtype, std::vector<int64_t> shape,
                     const void* values) {
    TensorEntry companion;
    companion.name = name;
    companion.dtype = dtype;
    companion.shape = std::move(shape);
    pad_to(kTensorAlignment);
    companion.offset = position;
    const int64_t rows = companion.rows();
    const uint64_t row_bytes = companion.row_bytes(), stride = companion.row_stride();
    companion.bytes = static_cast<uint64_t>(rows) * stride;
    std::vector<uint8_t> bytes(companion.bytes);
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(bytes.data() + static_cast<uint64_t>(r) * stride,
                  static_cast<const uint8_t*>(values) + static_cast<uint64_t>(r) * row_bytes,
                  row_bytes);
    }
    companion.crc32c = crc32c(bytes);
    put(bytes);
    tensors.push_back(std::move(companion));
    file_of.push_back(files - 1);
  }

  // Counts rows that were written, with their padding, into the checksums: one per group of 128
  // rows.
  void sum_rows(const uint8_t* rows, int64_t count) {
    const uint64_t stride = entry.row_stride();
    while (count > 0) {
      const int64_t group_end = std::min(entry.rows(), (rows_written / kCrcRows + 1) * kCrcRows);
      const int64_t now = std::min(count, group_end - rows_written);
      const std::span<const uint8_t> bytes(rows, static_cast<size_t>(now) * stride);
      crc = crc32c(bytes, crc);
      rows_written += now;
      if (rows_written == group_end) {
        sums.push_back(crc);
        crc = 0;
      }
      rows += bytes.size();
      count -= now;
    }
  }
};

Writer::Writer(const std::filesystem::path& folder, bool overwrite, uint64_t page,
               uint64_t max_file_bytes)
    : impl_(std::make_unique<Impl>(folder, overwrite, page, max_file_bytes)) {
  if (page < kFileHeaderBytes || page % kTensorAlignment != 0)
    throw_failed(folder.string(), "the page must be a multiple of 128");
}

Writer::~Writer() = default;

const std::filesystem::path& Writer::temporary() const { return impl_->folder.temporary(); }

void Writer::begin_tensor(const TensorEntry& entry, std::span<const TensorEntry> carried) {
  Impl& impl = *impl_;
  if (impl.open) throw_failed(impl.where(), "was not finished before the next tensor began");
  impl.entry = TensorEntry{};
  impl.entry.name = entry.name;
  impl.entry.dtype = entry.dtype;
  impl.entry.shape = entry.shape;
  impl.entry.block_rows = entry.block_rows;
  impl.entry.block_cols = entry.block_cols;
  impl.entry.scale_dtype = entry.scale_dtype;
  impl.entry.source_scale = entry.source_scale;
  impl.entry.bytes = static_cast<uint64_t>(entry.rows()) * entry.row_stride();
  if (impl.plan.place(placed_bytes(entry, carried))) impl.begin_file();
  impl.pad_to(kTensorAlignment);
  impl.entry.offset = impl.position;
  impl.rows_written = 0;
  impl.crc = 0;
  impl.sums.clear();
  impl.scales.clear();
  impl.carried.clear();
  for (const TensorEntry& each : carried) {
    TensorEntry kept;
    kept.name = each.name;
    kept.dtype = each.dtype;
    kept.shape = each.shape;
    impl.entry.companions.push_back(each.name);
    impl.carried.push_back({std::move(kept), {}});
  }
  impl.open = true;
}

void Writer::write_rows(const void* dense_rows, int64_t count) {
  Impl& impl = *impl_;
  if (!impl.open || count < 0 || count > impl.entry.rows() - impl.rows_written) {
    throw_failed(impl.where(), "got more rows than its shape has");
  }
  const uint8_t* rows = static_cast<const uint8_t*>(dense_rows);
  const uint64_t row_bytes = impl.entry.row_bytes(), stride = impl.entry.row_stride();
  if (row_bytes == stride) {
    impl.put({rows, static_cast<size_t>(count) * stride});
    impl.sum_rows(rows, count);
    return;
  }
  const int64_t batch = std::max<int64_t>(1, static_cast<int64_t>(kPadBufferBytes / stride));
  for (int64_t done = 0; done < count; done += batch) {
    const int64_t now = std::min(batch, count - done);
    impl.padded.assign(static_cast<size_t>(now) * stride, 0);
    for (int64_t r = 0; r < now; ++r) {
      std::memcpy(impl.padded.data() + static_cast<uint64_t>(r) * stride,
                  rows + static_cast<uint64_t>(done + r) * row_bytes, row_bytes);
    }
    impl.put(impl.padded);
    impl.sum_rows(impl.padded.data(), now);
  }
}

void Writer::set_scales(std::span<const float> scales) {
  if (impl_->entry.scale_dtype != tensor::DType::kF32)
    throw_failed(impl_->where(), "got scales of another type than its own");
  set_scale_bytes({reinterpret_cast<const uint8_t*>(scales.data()), scales.size_bytes()});
}

void Writer::set_scale_bytes(std::span<const uint8_t> bytes) {
  Impl& impl = *impl_;
  const TensorEntry& entry = impl.entry;
  if (!impl.open || entry.block_rows < 1 || entry.block_cols < 1 ||
      bytes.size() != static_cast<uint64_t>(ceil_div(entry.rows(), entry.block_rows) *
                                            ceil_div(entry.cols(), entry.block_cols)) *
                          tensor::dtype_bytes(entry.scale_dtype)) {
    throw_failed(impl.where(), "got scales that do not fit its blocks");
  }
  impl.scales.assign(bytes.begin(), bytes.end());
}

void Writer::set_carried(std::string_view name, std::span<const uint8_t> bytes) {
  Impl& impl = *impl_;
  for (Impl::Carried& each : impl.carried) {
    if (!impl.open || each.entry.name != name) continue;
    if (bytes.size() != static_cast<uint64_t>(each.entry.rows()) * each.entry.row_bytes()) break;
    each.bytes.assign(bytes.begin(), bytes.end());
    return;
  }
  throw_failed(impl.where(), "carries no tensor " + std::string(name) + " of that size");
}

void Writer::finish_tensor() {
  Impl& impl = *impl_;
  if (!impl.open || impl.rows_written != impl.entry.rows())
    throw_failed(impl.where(), "was finished before all its rows were there");
  if ((impl.entry.block_rows > 0) != !impl.scales.empty())
    throw_failed(impl.where(), "was finished without its scales");
  for (const Impl::Carried& each : impl.carried) {
    if (each.bytes.empty()) throw_failed(impl.where(), "was finished without " + each.entry.name);
  }
  impl.open = false;
  TensorEntry entry = impl.entry;
  entry.crc = entry.name + ".crc";
  if (entry.block_rows > 0)
    entry.scale = entry.name + (entry.dtype == tensor::DType::kNf4 ? ".absmax" : ".scale");
  impl.tensors.push_back(entry);
  impl.file_of.push_back(impl.files - 1);
  if (entry.block_rows > 0) {
    impl.put_companion(
        entry.scale, entry.scale_dtype,
        {ceil_div(entry.rows(), entry.block_rows), ceil_div(entry.cols(), entry.block_cols)},
        impl.scales.data());
  }
  for (const Impl::Carried& each : impl.carried) {
    impl.put_companion(each.entry.name, each.entry.dtype, each.entry.shape, each.bytes.data());
  }
  impl.put_companion(entry.crc, tensor::DType::kU32, {static_cast<int64_t>(impl.sums.size())},
                     impl.sums.data());
}

void Writer::add_alias(const std::string& name, const std::string& alias_of, bool source_had_both) {
  for (const TensorEntry& entry : impl_->tensors) {
    if (entry.name != alias_of) continue;
    TensorEntry alias;
    alias.name = name;
    alias.dtype = entry.dtype;
    alias.shape = entry.shape;
    alias.alias_of = alias_of;
    alias.source_had_both = source_had_both;
    impl_->tensors.push_back(std::move(alias));
    impl_->file_of.push_back(-1);
    return;
  }
  throw_failed(impl_->folder.final_path().string() + ": " + name,
               "is to be an alias of " + alias_of + ", which was not written");
}

void Writer::add_file(const std::filesystem::path& source, const std::string& name) {
  const File in = File::open_read(source);
  File out = File::create(temporary() / name);
  const uint64_t size = in.size();
  std::vector<uint8_t> buffer(std::min<uint64_t>(size, kPadBufferBytes));
  for (uint64_t done = 0; done < size;) {
    const uint64_t now = std::min<uint64_t>(buffer.size(), size - done);
    in.read_at(done, {buffer.data(), static_cast<size_t>(now)});
    out.write({buffer.data(), static_cast<size_t>(now)});
    done += now;
  }
  out.close();
}

void Writer::add_file_text(const std::string& name, const std::string& text) {
  make_folders((temporary() / name).parent_path());
  File out = File::create(temporary() / name);
  out.write({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  out.close();
}

void Writer::finish(Model model) {
  Impl& impl = *impl_;
  if (impl.open) throw_failed(impl.where(), "was not finished");
  impl.end_file();
  for (int64_t i = 0; i < impl.files; ++i) {
    rename_path(temporary() / part_name(i), temporary() / weight_file_name(i, impl.files));
  }
  for (size_t i = 0; i < impl.tensors.size(); ++i) {
    if (impl.file_of[i] >= 0) impl.tensors[i].file = weight_file_name(impl.file_of[i], impl.files);
  }
  model.version_major = kVersionMajor;
  model.version_minor = kVersionMinor;
  model.tensors = impl.tensors;
  const std::string where = (impl.folder.final_path() / kModelFile).string();
  validate_table(model, where);
  validate_graph(model, where);
  validate_files(model, temporary());
  add_file_text(std::string(kModelFile), model_to_text(model));
  impl.folder.commit();
}

}  // namespace loongforge::ir
