// LF_API marks what libloongforge.so exports: all that the commands use. Everything else is hidden.
#pragma once

#define LF_API __attribute__((visibility("default")))
