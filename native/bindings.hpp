// What the files of bindings know of each other.
#pragma once

#include <nanobind/nanobind.h>

namespace forebay_bindings {

void bind_images(nanobind::module_& m);
void bind_records(nanobind::module_& m);
void bind_text(nanobind::module_& m);

}  // namespace forebay_bindings
