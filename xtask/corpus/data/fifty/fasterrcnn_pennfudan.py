# torchvision's detection tutorial with made-up boxes
import torch
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_fpn
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor


class Boxes(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        n = int(torch.randint(1, 6, (1,), generator=g))
        xy = torch.rand(n, 2, generator=g) * 180
        wh = torch.rand(n, 2, generator=g) * 100 + 20
        return torch.rand(3, 320, 320, generator=g), {
            "boxes": torch.cat([xy, xy + wh], 1),
            "labels": torch.randint(1, 3, (n,), generator=g),
        }


def collate(b):
    return tuple(zip(*b))


model = fasterrcnn_mobilenet_v3_large_fpn(weights=None, weights_backbone=None, min_size=320, max_size=320)
model.roi_heads.box_predictor = FastRCNNPredictor(model.roi_heads.box_predictor.cls_score.in_features, 3)
model.cuda()
opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.005, momentum=0.9, weight_decay=5e-4)
loader = torch.utils.data.DataLoader(Boxes(), 4, collate_fn=collate)
for epoch in range(2):
    model.train()
    for images, targets in loader:
        images = [x.cuda() for x in images]
        targets = [{k: v.cuda() for k, v in t.items()} for t in targets]
        losses = model(images, targets)
        loss = sum(losses.values())
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(epoch, {k: round(v.item(), 3) for k, v in losses.items()})
model.eval()
with torch.no_grad():
    out = model([torch.rand(3, 320, 320).cuda()])
print(len(out[0]["boxes"]))
