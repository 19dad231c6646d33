"""Layers for PyTorch; needs the extra ``torch``. Nothing else in the library imports it."""

from thinleaf.torch.heads.agreement import AgreementReport, TextAgreement, agreement_report
from thinleaf.torch.heads.collect import collect_states
from thinleaf.torch.heads.draft import DraftMapping, DraftReport, draft_mapping, draft_report
from thinleaf.torch.heads.replace import replace_head
from thinleaf.torch.heads.targets import FullAnswers, full_answers
from thinleaf.torch.heads.tree_head import KeptLogits, TreeHead
from thinleaf.torch.label_tree_softmax import LabelTreeSoftmax, LossAndOutput

__all__ = [
    "AgreementReport",
    "DraftMapping",
    "DraftReport",
    "FullAnswers",
    "KeptLogits",
    "LabelTreeSoftmax",
    "LossAndOutput",
    "TextAgreement",
    "TreeHead",
    "agreement_report",
    "collect_states",
    "draft_mapping",
    "draft_report",
    "full_answers",
    "replace_head",
]
