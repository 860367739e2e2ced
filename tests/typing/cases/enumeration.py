"""The items of an enumeration are its instances to the checker; those of others are not."""

import jax

from ecliptic.runtime import Enumeration, member


class Plain(Enumeration):
    success = ""
    failure = "It failed."


class Base(Enumeration):
    success = member("")
    failure = member("It failed.")


class More(Base):
    partial = member("Some of it failed.")


class Extended(Plain):  # error: reportGeneralTypeIssues
    partial = "Some of it failed."


def strings(pred: bool, batch: jax.Array, item: Plain) -> None:
    reveal_type(Plain.where(pred, Plain.success, item))  # reveals: Plain
    reveal_type(Plain.where(batch > 0, Plain.success, item))  # reveals: Plain
    reveal_type(Plain[item])  # reveals: str
    reveal_type(item == Plain.success)  # reveals: Array
    reveal_type(item.message)  # reveals: str
    reveal_type(item.error_if(batch, pred))  # reveals: Array
    reveal_type(len(Plain))  # reveals: int
    reveal_type(list(Plain))  # reveals: list[Plain]
    Plain.where(pred, Base.success, Plain.failure)  # error: reportArgumentType
    Plain[Base.success]  # error: reportArgumentType
    Plain.succes  # error: reportAttributeAccessIssue


def members(pred: bool) -> None:
    reveal_type(Base.success)  # reveals: Base
    reveal_type(More.success)  # reveals: More
    reveal_type(More.partial)  # reveals: More
    reveal_type(More.promote(Base.failure))  # reveals: More
    reveal_type(More.where(pred, More.partial, More.success))  # reveals: More
    reveal_type(More[More.success])  # reveals: str
    More.where(pred, Base.success, More.partial)  # error: reportArgumentType
