# SPDX-License-Identifier: MIT
"""Boots real guests against the server and watches what they see. See docs/lab.md."""
