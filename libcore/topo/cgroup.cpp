#include "topo/cgroup.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace loongforge::topo {
namespace fs = std::filesystem;
namespace {

// Version 1 writes "no limit" as the largest multiple of a page; no machine has this much memory.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

struct Mount {
  bool v2;
  std::string root, point, options;
};

struct Group {
  std::string controllers, path;  // controllers is empty for version 2
};

std::optional<int64_t> to_int(const std::string& word) {
  int64_t value = 0;
  const char* end = word.data() + word.size();
  auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::vector<std::string> words_of(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> words;
  for (std::string word; words.size() < 16 && in >> word;) words.push_back(word);
  return words;
}

std::optional<int64_t> int_of(const fs::path& path) {
  std::vector<std::string> words = words_of(path);
  return words.empty() ? std::nullopt : to_int(words[0]);
}

// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    bool octal = text[i] == '\\' && i + 3 < text.size();
    for (size_t k = 1; octal && k <= 3; ++k) octal = text[i + k] >= '0' && text[i + k] <= '7';
    if (octal) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool has_word(const std::string& list, std::string_view word) {
  std::istringstream in(list);
  for (std::string item; std::getline(in, item, ',');) {
    if (item == word) return true;
  }
  return false;
}

// id parent major:minor root point options [optional...] - type source super-options
std::vector<Mount> read_mounts(const fs::path& file) {
  std::ifstream in(file);
  std::vector<Mount> mounts;
  for (std::string line; std::getline(in, line);) {
    size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream left(line.substr(0, dash)), right(line.substr(dash + 3));
    std::string skip, root, point, type, source, options;
    left >> skip >> skip >> skip >> root >> point;
    right >> type >> source >> options;
    if (type != "cgroup" && type != "cgroup2") continue;
    mounts.push_back({type == "cgroup2", unescaped(root), unescaped(point), options});
  }
  return mounts;
}

// number:controllers:path
std::vector<Group> read_groups(const fs::path& file) {
  std::ifstream in(file);
  std::vector<Group> groups;
  for (std::string line; std::getline(in, line);) {
    size_t first = line.find(':');
    size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    groups.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return groups;
}

// The folders of the group and of those above it, as far as the mount shows them, the group's own
// first.
std::vector<fs::path> folders_of(const fs::path& root, const Mount& mount,
                                 const std::string& group) {
  fs::path point = root / fs::path(mount.point).relative_path();
  std::string below = group;
  if (mount.root != "/") {
    // A container without a cgroup namespace: the mount shows only the part from its root on.
    below =
        group.compare(0, mount.root.size(), mount.root) == 0 ? group.substr(mount.root.size()) : "";
  }
  fs::path relative = fs::path(below).relative_path();
  // A group outside our namespace: only the mount's root is known.
  if (std::find(relative.begin(), relative.end(), "..") != relative.end()) relative.clear();
  std::vector<fs::path> folders;
  for (; !relative.empty(); relative = relative.parent_path()) folders.push_back(point / relative);
  folders.push_back(point);
  return folders;
}

void take_cpus(CgroupLimits* limits, std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return;
  double cpus = static_cast<double>(*quota) / static_cast<double>(*period);
  if (limits->cpus == 0 || cpus < limits->cpus) limits->cpus = cpus;
}

void take_memory(CgroupLimits* limits, const fs::path& folder, const char* limit_name,
                 const char* used_name, std::string_view cache_key) {
  std::optional<int64_t> limit = int_of(folder / limit_name);
  if (!limit || *limit <= 0 || static_cast<uint64_t>(*limit) >= kNoLimit) return;
  if (limits->memory_limit != 0 && static_cast<uint64_t>(*limit) >= limits->memory_limit) return;
  limits->memory_limit = static_cast<uint64_t>(*limit);
  int64_t used = int_of(folder / used_name).value_or(0);
  std::ifstream stat(folder / "memory.stat");
  int64_t value = 0;
  for (std::string key; stat >> key >> value;) {
    if (key == cache_key) used -= value;
  }
  limits->memory_used = used > 0 ? static_cast<uint64_t>(used) : 0;
}

void read_v2(CgroupLimits* limits, const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders) {
    // "max 100000" sets nothing: max is no number.
    if (auto words = words_of(folder / "cpu.max"); words.size() >= 2) {
      take_cpus(limits, to_int(words[0]), to_int(words[1]));
    }
    take_memory(limits, folder, "memory.max", "memory.current", "inactive_file");
  }
}

}  // namespace

CgroupLimits read_cgroup_limits(const fs::path& root) {
  CgroupLimits limits;
  std::vector<Mount> mounts = read_mounts(root / "proc/self/mountinfo");
  for (const Group& group : read_groups(root / "proc/self/cgroup")) {
    for (const Mount& mount : mounts) {
      if (group.controllers.empty()) {
        if (mount.v2) read_v2(&limits, folders_of(root, mount, group.path));
        continue;
      }
      if (mount.v2) continue;
      for (const fs::path& folder : folders_of(root, mount, group.path)) {
        if (has_word(group.controllers, "cpu") && has_word(mount.options, "cpu")) {
          take_cpus(&limits, int_of(folder / "cpu.cfs_quota_us"),
                    int_of(folder / "cpu.cfs_period_us"));
        }
        if (has_word(group.controllers, "memory") && has_word(mount.options, "memory")) {
          take_memory(&limits, folder, "memory.limit_in_bytes", "memory.usage_in_bytes",
                      "total_inactive_file");
        }
      }
    }
  }
  return limits;
}

}  // namespace loongforge::topo
