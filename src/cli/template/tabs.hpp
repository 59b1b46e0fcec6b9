// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace berth::cli {

/// Columns out of tabs, as docker's lists have them: a cell ends with a tab, the cells of lines
/// that follow each other and have a cell there are made equally wide, with three blanks behind the
/// widest and ten columns at least. What stands behind the last tab of a line is no cell.
/// Source: Go's text/tabwriter with minwidth 10, padding 3, as docker/cli uses it.
std::string align_tabs(std::string_view text);

}  // namespace berth::cli
