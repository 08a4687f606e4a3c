"""Lightning on one GPU."""
# /// xmem
# iterations = 3
# stdout = ["training on cuda:0"]
# stdout-without = ["done"]
# ///
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 4))

    def on_train_start(self):
        print("training on", self.device, flush=True)

    def training_step(self, batch, _):
        inputs, targets = batch
        loss = nn.functional.cross_entropy(self.layers(inputs), targets)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


data = TensorDataset(torch.randn(2048, 256), torch.randint(0, 4, (2048,)))
trainer = L.Trainer(
    accelerator="gpu", devices=1, max_epochs=1, logger=False, enable_checkpointing=False,
    enable_progress_bar=False,
)
trainer.fit(Classifier(), DataLoader(data, batch_size=32))
print("done")
