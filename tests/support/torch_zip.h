// Making zip files and pickles by hand: those of torch, and those that no torch would write.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/bytes.h"

namespace loongforge::test {

struct MadeEntry {
  std::string name, data = {};
  uint16_t flags = 0, method = 0;
  bool descriptor = false;      // sizes of the local header are 0 and follow the data
  bool zip64 = false;           // sizes and offset stand in a ZIP64 field of the directory
  size_t padding = 0;           // bytes of the local header's extra field
  std::string local_name = {};  // empty: name
  uint32_t claimed_bytes = 0;   // in the directory; 0: the data's
  int64_t local_shift = 0;      // added to the offset in the directory
};

// The bytes of a zip file. zip64_end: with a ZIP64 end record and the marks of it in the old one.
inline std::string zip_bytes(const std::vector<MadeEntry>& entries, bool zip64_end = false,
                             std::string_view comment = {}) {
  std::string file, directory;
  for (const MadeEntry& e : entries) {
    const std::string& local_name = e.local_name.empty() ? e.name : e.local_name;
    const uint64_t offset =
        static_cast<uint64_t>(static_cast<int64_t>(file.size()) + e.local_shift);
    const uint16_t flags = static_cast<uint16_t>(e.flags | (e.descriptor ? 8 : 0));
    const uint32_t bytes = static_cast<uint32_t>(e.data.size());
    const uint32_t told = e.claimed_bytes != 0 ? e.claimed_bytes : bytes;
    append_number<uint32_t>(file, 0x04034b50);
    append_number<uint16_t>(file, 20);
    append_number(file, flags);
    append_number(file, e.method);
    append_number<uint64_t>(file, 0);  // time, date, checksum
    append_number<uint32_t>(file, e.descriptor ? 0 : told);
    append_number<uint32_t>(file, e.descriptor ? 0 : told);
    append_number(file, static_cast<uint16_t>(local_name.size()));
    append_number(file, static_cast<uint16_t>(e.padding));
    file += local_name + std::string(e.padding, 'Z') + e.data;
    if (e.descriptor) {
      append_number<uint32_t>(file, 0x08074b50);
      append_number<uint32_t>(file, 0);
      append_number(file, bytes);
      append_number(file, bytes);
    }
    constexpr uint32_t kWide = 0xffffffff;
    append_number<uint32_t>(directory, 0x02014b50);
    append_number<uint32_t>(directory, 20 << 16 | 20);
    append_number(directory, flags);
    append_number(directory, e.method);
    append_number<uint64_t>(directory, 0);
    append_number(directory, e.zip64 ? kWide : told);
    append_number(directory, e.zip64 ? kWide : told);
    append_number(directory, static_cast<uint16_t>(e.name.size()));
    append_number(directory, static_cast<uint16_t>(e.zip64 ? 28 : 0));
    append_number<uint16_t>(directory, 0);
    append_number<uint64_t>(directory, 0);  // disk, attributes
    append_number(directory, e.zip64 ? kWide : static_cast<uint32_t>(offset));
    directory += e.name;
    if (e.zip64) {
      append_number<uint16_t>(directory, 1);
      append_number<uint16_t>(directory, 24);
      append_number<uint64_t>(directory, told);
      append_number<uint64_t>(directory, told);
      append_number(directory, offset);
    }
  }
  const uint64_t start = file.size(), bytes = directory.size(), count = entries.size();
  file += directory;
  if (zip64_end) {
    const uint64_t at = file.size();
    append_number<uint32_t>(file, 0x06064b50);
    append_number<uint64_t>(file, 44);
    append_number<uint32_t>(file, 45 << 16 | 45);
    append_number<uint64_t>(file, 0);
    append_number(file, count);
    append_number(file, count);
    append_number(file, bytes);
    append_number(file, start);
    append_number<uint32_t>(file, 0x07064b50);
    append_number<uint32_t>(file, 0);
    append_number(file, at);
    append_number<uint32_t>(file, 1);
  }
  append_number<uint32_t>(file, 0x06054b50);
  append_number<uint32_t>(file, 0);
  append_number(file, static_cast<uint16_t>(zip64_end ? 0xffff : count));
  append_number(file, static_cast<uint16_t>(zip64_end ? 0xffff : count));
  append_number(file, static_cast<uint32_t>(zip64_end ? 0xffffffff : bytes));
  append_number(file, static_cast<uint32_t>(zip64_end ? 0xffffffff : start));
  append_number(file, static_cast<uint16_t>(comment.size()));
  return file.append(comment);
}

// ---- pickles ----

inline std::string pickle_text(std::string_view text) {
  std::string out = "X";
  append_number(out, static_cast<uint32_t>(text.size()));
  return out.append(text);
}

inline std::string pickle_int(int64_t value) {
  std::string out = "\x8a\x08";
  append_number(out, value);
  return out;
}

inline std::string pickle_tuple(const std::vector<std::string>& items) {
  std::string out = "(";
  for (const std::string& item : items) out += item;
  return out + "t";
}

inline std::string pickle_ints(const std::vector<int64_t>& values) {
  std::vector<std::string> items;
  for (int64_t value : values) items.push_back(pickle_int(value));
  return pickle_tuple(items);
}

inline std::string pickle_global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}

inline std::string pickle_storage(std::string_view type, std::string_view key, int64_t elements) {
  return pickle_tuple({pickle_text("storage"), pickle_global("torch", type), pickle_text(key),
                       pickle_text("cpu"), pickle_int(elements)}) +
         "Q";
}

inline std::string pickle_tensor(const std::string& storage, int64_t offset,
                                 const std::vector<int64_t>& shape,
                                 const std::vector<int64_t>& stride) {
  return pickle_global("torch._utils", "_rebuild_tensor_v2") +
         pickle_tuple({storage, pickle_int(offset), pickle_ints(shape), pickle_ints(stride), "\x89",
                       pickle_global("collections", "OrderedDict") + ")R"}) +
         "R";
}

// A dictionary of these, the whole pickle. items: name and value.
inline std::string pickle_of(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string out = "\x80\x02}(";
  for (const auto& [name, value] : items) out += pickle_text(name) + value;
  return out + "u.";
}

// A torch file of this pickle and these storages (key, bytes).
inline std::string torch_bytes(const std::string& pickle,
                               const std::vector<std::pair<std::string, std::string>>& storages) {
  std::vector<MadeEntry> entries;
  entries.push_back({.name = "m/data.pkl", .data = pickle, .descriptor = true, .padding = 19});
  for (const auto& [key, data] : storages)
    entries.push_back({.name = "m/data/" + key, .data = data, .descriptor = true, .padding = 41});
  entries.push_back({.name = "m/version", .data = "3\n"});
  return zip_bytes(entries, true);
}

}  // namespace loongforge::test
