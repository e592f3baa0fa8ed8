// CHECKs that an expression throws Error with a code, and that the one line it makes holds a text.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "base/error.h"

#define LF_CHECK_ERROR(expression, expected_code, text)                            \
  do {                                                                             \
    bool lf_thrown = false;                                                        \
    try {                                                                          \
      static_cast<void>(expression);                                               \
    } catch (const loongforge::Error& lf_error) {                                  \
      lf_thrown = true;                                                            \
      CHECK(static_cast<int>(lf_error.code()) == static_cast<int>(expected_code)); \
      std::string lf_line = lf_error.what();                                       \
      CAPTURE(lf_line);                                                            \
      CHECK(lf_line.find(text) != std::string::npos);                              \
      CHECK(lf_line.find('\n') == std::string::npos);                              \
    }                                                                              \
    CHECK_MESSAGE(lf_thrown, "no Error from " #expression);                        \
  } while (false)
