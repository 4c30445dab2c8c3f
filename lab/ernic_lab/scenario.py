# SPDX-License-Identifier: MIT
"""What a scenario file is made of.

A file in lab/scenarios holds functions marked with @scenario. Each gets a Lab and returns its
evidence: one short line that shows what was seen. It fails by raising, usually through require().
"""
from dataclasses import dataclass
from typing import Callable

_REGISTRY = []


class Failure(Exception):
    """The scenario saw something wrong."""


@dataclass(frozen=True)
class Scenario:
    name: str
    purpose: str
    run: Callable
    tier: str     # "quick": part of every ./dev test; "full": only with --full
    boot: str     # "shared": one guest for many; "own": gets a new server and guest; "none": boots for itself
    card: bool    # False: a guest without our card
    complaints: bool  # True: the drivers are expected to complain in the kernel log


def scenario(name, tier="quick", boot="shared", card=True, complaints=False):
    def register(function):
        purpose = (function.__doc__ or "").strip().splitlines()[0]
        _REGISTRY.append(Scenario(name, purpose, function, tier, boot, card, complaints))
        return function
    return register


def registered():
    return list(_REGISTRY)


def require(condition, message):
    if not condition:
        raise Failure(message)
