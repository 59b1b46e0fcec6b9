# SPDX-License-Identifier: Apache-2.0
"""With BERTH_TEST_DRIVERS="550 390" the tests of other branches are not selected. What needs another one beside
these is skipped, with its reason."""

from support import real_drivers


def _branches(value):
    """The branches that a parameter names: "550", ("550", "390")."""
    values = value if isinstance(value, (tuple, list)) else [value]
    return {one for one in values if isinstance(one, str) and one in real_drivers.BRANCHES}


def pytest_collection_modifyitems(config, items):
    def is_asked(item):
        params = item.callspec.params.values() if hasattr(item, "callspec") else ()
        return all(real_drivers.is_asked(branch) for value in params for branch in _branches(value))
    left_out = [item for item in items if not is_asked(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if is_asked(item)]
