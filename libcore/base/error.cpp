#include "base/error.h"

#include <utility>

namespace loongforge {

Error::Error(ErrorCode code, std::string where, std::string what, std::string hint)
    : code_(code), where_(std::move(where)), message_(std::move(what)), hint_(std::move(hint)) {
  if (!where_.empty()) line_ = where_ + ": ";
  line_ += message_;
  if (!hint_.empty()) line_ += "; " + hint_;
}

void throw_bad_data(std::string where, std::string what, std::string hint) {
  throw Error(ErrorCode::kBadData, std::move(where), std::move(what), std::move(hint));
}

void throw_no_input(std::string where, std::string what, std::string hint) {
  throw Error(ErrorCode::kNoInput, std::move(where), std::move(what), std::move(hint));
}

void throw_usage(std::string what, std::string hint) {
  throw Error(ErrorCode::kUsage, {}, std::move(what), std::move(hint));
}

void throw_failed(std::string where, std::string what, std::string hint) {
  throw Error(ErrorCode::kFailed, std::move(where), std::move(what), std::move(hint));
}

}  // namespace loongforge
