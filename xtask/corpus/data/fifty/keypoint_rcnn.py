# Keypoint R-CNN, made-up people
import torch
from torchvision.models.detection import KeypointRCNN
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

torch.manual_seed(0)
backbone = resnet_fpn_backbone(backbone_name="resnet18", weights=None, trainable_layers=5)
model = KeypointRCNN(backbone, num_classes=2, num_keypoints=17, min_size=256, max_size=320).cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
scaler = torch.amp.GradScaler("cuda")
for step in range(5):
    images, targets = [], []
    for _ in range(2):
        images.append(torch.rand(3, 256, 256).cuda())
        n = 3
        xy = torch.rand(n, 2) * 100
        boxes = torch.cat([xy, xy + 80 + torch.rand(n, 2) * 50], 1)
        kp = boxes[:, None, :2] + torch.rand(n, 17, 2) * 80
        targets.append(
            {
                "boxes": boxes.cuda(),
                "labels": torch.ones(n, dtype=torch.int64).cuda(),
                "keypoints": torch.cat([kp, torch.ones(n, 17, 1)], 2).cuda(),
            }
        )
    with torch.autocast("cuda"):
        losses = model(images, targets)
        loss = sum(losses.values())
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    print(step, loss.item())
