"""Label trees for PyTorch; needs the extra ``torch``. Nothing else in the library imports it."""

from thinleaf.torch.softmax import LabelTreeSoftmax, LossAndOutput

__all__ = ["LabelTreeSoftmax", "LossAndOutput"]
