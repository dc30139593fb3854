"""scikit-learn's BaseEstimator with types, which scikit-learn itself does not declare."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

    from sklearn.utils import Tags
    from sklearn.utils.metadata_routing import MetadataRequest

    class BaseEstimator:
        """The methods that users and the package call."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: object) -> Self: ...
        def get_metadata_routing(self) -> MetadataRequest: ...
        def set_fit_request(self, **requested: bool | str | None) -> Self: ...
        def set_partial_fit_request(self, **requested: bool | str | None) -> Self: ...
        def set_score_request(self, **requested: bool | str | None) -> Self: ...
        def __sklearn_tags__(self) -> Tags: ...
else:
    from sklearn.base import BaseEstimator

__all__ = ["BaseEstimator"]
