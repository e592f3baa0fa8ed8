// Writes a LoongIR folder: tensors are streamed in the order of add_tensor() calls, nothing is held
// but one file's state. The folder appears under its final name at finish() or not at all.
// Thread-safety: one thread.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "ir/model.h"

namespace loongforge::ir {

class LF_API Writer {
 public:
  // page: file data starts at a multiple of it (16384 loongarch64, 4096 x86_64). Throws as base
  // FolderWriter does.
  Writer(const std::filesystem::path& folder, bool overwrite, uint64_t page,
         uint64_t max_file_bytes = 5'000'000'000);
  ~Writer();

  // Begins tensor T; then write_rows() until all rows are there. Only name, dtype, shape,
  // block_rows, block_cols, scale_dtype, source_scale are read. FP8 and NF4 tensors take their
  // scales (row-major [ceil(rows/r), ceil(cols/c)]; NF4: the absmax) in set_scales() or
  // set_scale_bytes() before finish_tensor(), and each carried tensor (name, dtype, shape) its
  // bytes in set_carried().
  void begin_tensor(const TensorEntry& entry, std::span<const TensorEntry> carried = {});
  void write_rows(const void* dense_rows,
                  int64_t count);  // dense rows (row_bytes each); padding is added here
  void set_scales(std::span<const float> scales);        // REQUIRES scale_dtype F32
  void set_scale_bytes(std::span<const uint8_t> bytes);  // dense elements of scale_dtype
  void set_carried(std::string_view name, std::span<const uint8_t> bytes);  // dense elements
  void finish_tensor();
  void add_alias(const std::string& name, const std::string& alias_of, bool source_had_both);
  void add_file(const std::filesystem::path& source,
                const std::string& name);  // tokenizer files etc., copied as they are
  void add_file_text(const std::string& name,
                     const std::string& text);  // name may stand in a subfolder
  const std::filesystem::path& temporary() const;

  // Writes loongir_model.json (model.tensors is filled from what was written), syncs, renames.
  void finish(Model model);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace loongforge::ir
