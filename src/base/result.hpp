// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/assert.hpp"
#include "base/error.hpp"

namespace berth {

/// Either a T or an Error. Discarding a Result is a compiler warning, which fails the build. We do
/// not use std::expected, since g++ 12 does not warn if one is discarded (docs/hacking.md).
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT
  template <class U>
  requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
           !std::is_same_v<std::remove_cvref_t<U>, Error> &&
           !std::is_same_v<std::remove_cvref_t<U>, Result>) Result(U&& value)  // NOLINT
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    BERTH_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    BERTH_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    BERTH_ASSERT(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Error& error() & {
    BERTH_ASSERT(!ok());
    return *std::get_if<1>(&state_);
  }
  const Error& error() const& {
    BERTH_ASSERT(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    BERTH_ASSERT(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  void value() const { BERTH_ASSERT(ok()); }
  Error& error() & { return *error_; }
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

/// Marks a failure that does not matter; add a comment with the reason.
template <class T>
void ignore(Result<T>&&) {}

}  // namespace berth

/// Evaluates to the value of `expression`, or returns its error from the enclosing function. Starts
/// a statement or an initialiser; nested uses are rejected by -Wshadow.
#define TRY(expression)                                           \
  __extension__({                                                 \
    auto try_result_ = (expression);                              \
    if (!try_result_.ok()) return std::move(try_result_).error(); \
    std::move(try_result_).value();                               \
  })

/// TRY that adds `text` ("cannot …") as context; the text is built only on failure.
#define TRY_CTX(expression, text)                                                    \
  __extension__({                                                                    \
    auto try_result_ = (expression);                                                 \
    if (!try_result_.ok()) return std::move(try_result_).error().with_context(text); \
    std::move(try_result_).value();                                                  \
  })
