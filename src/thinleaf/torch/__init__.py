"""Label trees for PyTorch; needs the extra ``torch``. Nothing else in the library imports it."""

from thinleaf.torch.label_tree_softmax import LabelTreeSoftmax, LossAndOutput

__all__ = ["LabelTreeSoftmax", "LossAndOutput"]
