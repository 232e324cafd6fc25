"""skorch in a grid search of scikit-learn: clones, pickles, processes and threads of joblib's."""

import pickle
import warnings

warnings.simplefilter("ignore")

import joblib  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from sklearn.datasets import make_classification  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from skorch import NeuralNetClassifier  # noqa: E402
from skorch.callbacks import EpochScoring, GradientNormClipping, LRScheduler  # noqa: E402
from state import exact, report  # noqa: E402
from torch import nn  # noqa: E402


class Classifier(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Dropout(0.2))
        self.out = nn.Linear(width, 2)

    def forward(self, X):  # noqa: N803 (what skorch calls it)
        h = self.hidden(X)
        return self.out(h)


def one_step(seed):
    """Run in another process, or in a thread."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(3, 3, generator=generator, requires_grad=True)
    (weight @ weight.T).logsumexp(0).sum().backward()
    return exact(weight.grad.norm().item())


def main():
    torch.manual_seed(0)
    np.random.seed(0)
    features, labels = make_classification(80, 6, n_informative=4, random_state=0)
    features = features.astype(np.float32)
    net = NeuralNetClassifier(
        Classifier,
        criterion=nn.CrossEntropyLoss,
        max_epochs=3,
        batch_size=16,
        verbose=0,
        callbacks=[
            LRScheduler("StepLR", step_size=1),
            GradientNormClipping(1.0),
            EpochScoring("roc_auc", lower_is_better=False),
        ],
    )
    search = GridSearchCV(net, {"module__width": [4, 8], "lr": [0.01, 0.1]}, cv=2)
    search.fit(features, labels)
    pipeline = make_pipeline(StandardScaler(), net)
    scores = cross_val_score(pipeline, features, labels, cv=2)
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(one_step)(seed) for seed in range(4))
    found += joblib.Parallel(n_jobs=2, prefer="threads")(
        joblib.delayed(one_step)(seed) for seed in range(4)
    )
    report(
        again.module_,
        best=search.best_params_,
        scores=[exact(it) for it in [*search.cv_results_["mean_test_score"], *scores]],
        history=[exact(it) for it in search.best_estimator_.history[:, "train_loss"]],
        predicted=again.predict(features).tolist(),
        found=found,
    )


if __name__ == "__main__":
    main()
