"""`Checkpoints`: the states of a training run, saved by Orbax while the run goes on.

Orbax saves arrays: asynchronously, each device its own part, and in whole folders or not at all.
What else is in a tree goes into a JSON file beside them: see `_parts`.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from jaxtyping import PyTree

from ecliptic.errors import MissingPackageError, SerialisationError
from ecliptic.serialise._parts import Saved, taken_apart
from ecliptic.serialise._report import compare, mismatch, wanted_forms
from ecliptic.serialise._select import Rename, flatten, renamed

_ARRAYS, _INFO = "arrays", "tree"


class Checkpoints:
    """A folder of checkpoints of a training run, which Orbax writes and tidies up.

    Any PyTree can be saved: models with functions in them, optimiser states, typed PRNG keys, step
    counters. Arrays on several devices are saved by each device's part. A checkpoint is there
    whole, or not at all. Use it in a `with` statement, or call `close` at the end, which waits for
    what is still being written.

    Args:
        folder: where the checkpoints are; made if it is not there.
        keep: how many of the last checkpoints to keep; `None` keeps all.
        best: the name of a metric; the checkpoint where it is best is kept too.
        mode: whether the least or the greatest value of the metric is best. A loss is the more
            common, hence `"min"`.
        every: save only at steps that are divisible by this, so that `save` can stand in a loop.
        asynchronous: whether `save` returns when the arrays are copied, and they are written while
            the run goes on.

    Raises:
        MissingPackageError: `orbax-checkpoint` is not installed.
        SerialisationError: `keep`, `every` or `mode` is none of what is allowed.

    !!! Example

        >>> import tempfile
        >>> import ecliptic as ec, jax
        >>> from ecliptic.serialise import Checkpoints
        >>> model = ec.nn.MLP(2, 1, 8, 1, key=jax.random.key(0))
        >>> with Checkpoints(tempfile.mkdtemp(), keep=2, best="loss") as checkpoints:
        ...     for step in range(5):
        ...         saved = checkpoints.save(step, model, metrics={"loss": abs(step - 1)})
        ...     checkpoints.wait()
        ...     checkpoints.steps, checkpoints.latest, checkpoints.best
        ((1, 3, 4), 4, 1)
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        keep: int | None = None,
        best: str | None = None,
        mode: Literal["min", "max"] = "min",
        every: int = 1,
        asynchronous: bool = True,
    ) -> None:
        _check(keep, mode, every)
        self._orbax = orbax = _import_orbax()
        self._every = every
        self._best = best
        self._manager = orbax.CheckpointManager(
            Path(folder).resolve(),
            options=orbax.CheckpointManagerOptions(
                best_fn=None if best is None else (lambda metrics: metrics[best]),
                best_mode=mode,
                preservation_policy=_policy(keep, best, mode),
                enable_async_checkpointing=asynchronous,
            ),
            item_handlers={
                _ARRAYS: orbax.StandardCheckpointHandler(),
                _INFO: orbax.JsonCheckpointHandler(),
            },
        )

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps that there are checkpoints of."""
        return tuple(sorted(self._manager.all_steps()))

    @property
    def latest(self) -> int | None:
        """The last of them, or `None`."""
        return self._manager.latest_step()

    @property
    def best(self) -> int | None:
        """The one with the best metric, or `None`."""
        return None if self._best is None else self._manager.best_step()

    def wait(self) -> None:
        """Wait until all is written that was saved."""
        self._manager.wait_until_finished()

    def close(self) -> None:
        """Wait, and let go of the folder."""
        self._manager.close()

    def save(
        self,
        step: int,
        tree: PyTree,
        *,
        metrics: dict[str, float] | None = None,
        metadata: Any = None,
        is_leaf: Callable[[Any], bool] | None = None,
    ) -> bool:
        """Save a tree.

        Args:
            step: how many steps were taken: the name of the checkpoint.
            tree: all that the run needs to go on, for instance
                `{"model": model, "optimiser": state, "key": key}`.
            metrics: numbers by name; `best` is chosen by one of them.
            metadata: anything that JSON can hold.
            is_leaf: as in `jax.tree.map`: which nodes of `tree` are leaves too.

        Returns:
            Whether it was saved: not, if the step is not divisible by `every`.

        Raises:
            SerialisationError: a leaf cannot be saved, `metrics` lacks the one that `best` names,
                or there is a checkpoint of this step.
        """
        if step % self._every:
            return False
        if self._best is not None and self._best not in (metrics or {}):
            raise SerialisationError(
                f"The best checkpoint goes by {self._best!r}, but `metrics` has "
                f"{sorted(metrics or {})}. Pass `metrics={{{self._best!r}: …}}`."
            )
        if step in self._manager.all_steps():
            raise SerialisationError(
                f"There is a checkpoint of step {step} in {str(self._manager.directory)!r} "
                "already. Restore it and go on from there, or take another folder."
            )
        arrays, info = taken_apart(tree, is_leaf)
        items = {_INFO: self._orbax.args.JsonSave({**info, "metadata": metadata})}
        if arrays:
            items[_ARRAYS] = self._orbax.args.StandardSave(arrays)
        args = self._orbax.args.Composite(**items)
        return bool(self._manager.save(step, args=args, metrics=metrics))

    def restore(
        self,
        like: PyTree,
        step: int | None = None,
        *,
        strict: bool = True,
        rename: Rename = None,
        is_leaf: Callable[[Any], bool] | None = None,
    ) -> Any:
        """Read a tree back.

        Args:
            like: a tree of the structure that was saved, as in `load`. An array goes to the
                sharding that it has here, whatever it was saved with.
            step: which one; by default the latest.
            strict: as in `load`.
            rename: as in `load`.
            is_leaf: as in `jax.tree.map`: which nodes of `like` are leaves too.

        Returns:
            The tree; with `strict=False` the tree and a `LoadReport`.

        Raises:
            MismatchError: the checkpoint has other leaves than `like`.
            SerialisationError: there is no such checkpoint.
        """
        step = self._existing(step)
        saved = Saved(self._info(step))
        by_path = renamed(saved.records, rename)
        paths, leaves, treedef = flatten(like, is_leaf)
        places = dict(zip(paths, leaves, strict=True))
        report = compare(
            {path: saved.form(name) for path, name in by_path.items()},
            wanted_forms(places, by_path),
            name=by_path.__getitem__,
            ignore_extra=False,
        )
        if strict and not report.complete:
            raise mismatch(f"in the checkpoint of step {step}", report)
        wanted = {by_path[path]: places[path] for path in report.loaded}
        found = self._leaves(step, saved, wanted)
        tree = treedef.unflatten(
            [found[by_path[path]] if path in set(report.loaded) else places[path] for path in paths]
        )
        return tree if strict else (tree, report)

    def metadata(self, step: int | None = None) -> Any:
        """What was given to `save` as `metadata`.

        Args:
            step: which checkpoint's; by default that of the latest.
        """
        return self._info(self._existing(step))["metadata"]

    def _existing(self, step: int | None) -> int:
        self.wait()
        steps = self.steps
        chosen = self.latest if step is None else step
        if chosen is None or chosen not in steps:
            which = "no checkpoint" if step is None else f"no checkpoint of step {step}"
            raise SerialisationError(
                f"There is {which} in {str(self._manager.directory)!r}. It has those of the steps "
                f"{list(steps)}."
            )
        return chosen

    def _info(self, step: int) -> dict[str, Any]:
        args = self._orbax.args.Composite(**{_INFO: self._orbax.args.JsonRestore()})
        return self._manager.restore(step, args=args)[_INFO]

    def _leaves(self, step: int, saved: Saved, wanted: dict[str, Any]) -> dict[str, Any]:
        # Orbax wants a target for each array that there is.
        targets = saved.targets()
        for name, like in wanted.items():
            target = saved.target(name, like)
            if target is not None:
                targets[saved.number(name)] = target
        arrays: dict[str, Any] = {}
        if targets:
            restore = self._orbax.args.StandardRestore(targets)
            args = self._orbax.args.Composite(**{_ARRAYS: restore})
            arrays = self._manager.restore(step, args=args)[_ARRAYS]
        return {name: saved.leaf(name, like, arrays) for name, like in wanted.items()}


def _import_orbax() -> Any:
    try:
        import orbax.checkpoint  # noqa: PLC0415
    except ImportError as error:
        raise MissingPackageError(
            "`Checkpoints` needs the package `orbax-checkpoint`, which is not installed. Install "
            "it (`pip install orbax-checkpoint`, or `ecliptic[checkpoint]`), or use "
            "`ecliptic.serialise.save`."
        ) from error
    return orbax.checkpoint


def _check(keep: int | None, mode: str, every: int) -> None:
    if keep is not None and keep < 1:
        raise SerialisationError(f"`Checkpoints` got keep={keep}, and keeps one at least, or None.")
    if mode not in ("min", "max"):
        raise SerialisationError(f"`Checkpoints` got mode={mode!r}, which is neither min nor max.")
    if every < 1:
        raise SerialisationError(f"`Checkpoints` got every={every}, and saves every step at most.")


def _policy(keep: int | None, best: str | None, mode: str) -> Any:
    from orbax.checkpoint import checkpoint_managers  # noqa: PLC0415

    latest = checkpoint_managers.LatestN(keep)
    if best is None or keep is None:
        return latest
    best_one = checkpoint_managers.BestN(
        get_metric_fn=lambda metrics: metrics[best],
        reverse=mode == "min",
        n=1,
        keep_checkpoints_without_metrics=False,
    )
    return checkpoint_managers.AnyPreservationPolicy([latest, best_one])
