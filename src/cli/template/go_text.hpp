// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace berth::cli {

/// Aligns columns separated by tabs, as in docker's lists: a cell ends with a tab; cells of
/// consecutive lines in the same column get equal widths, three blanks more than the widest and at
/// least ten columns. Text behind the last tab of a line is not a cell.
/// Source: Go's text/tabwriter with minwidth 10, padding 3, as docker/cli uses it.
std::string align_tabs(std::string_view text);

/// In double quotes, with control characters, quotes and backslashes escaped, as Go's %q.
std::string quote_as_go(std::string_view text);

}  // namespace berth::cli
