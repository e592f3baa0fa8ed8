// doctest 2.5 prints a pointer to characters as 1, in messages and in failed comparisons; older
// ones print the text. Every test is compiled with this in front where doctest is 2.5 or newer.
#pragma once

#include <doctest/doctest.h>

template <>
struct doctest::StringMaker<const char*> {
  static String convert(const char* text) { return text; }
};
template <>
struct doctest::StringMaker<char*> : doctest::StringMaker<const char*> {};
