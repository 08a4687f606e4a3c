"""Jobs on the CPU, whose tensors go where allocators may go wrong. Prints what they compute, to the last bit."""

import pathlib
import queue
import sys
import threading
import time

import torch

ITERATIONS = 30
# Behind these iterations there is time for a plan.
OBSERVED = 6


def network():
    """Convolutions, whose memory comes and goes."""
    layers = [torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU()]
    for _ in range(3):
        layers += [torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(16 * 32 * 32, 10))


def iterations():
    """The numbers of the iterations; a plan is waited for."""
    for number in range(ITERATIONS):
        if number == OBSERVED:
            time.sleep(1.5)
        yield number


def show(number, tensor):
    """Prints a tensor's sum as it is in memory."""
    print(number, tensor.detach().double().sum().item().hex())


def inference():
    """Results are kept, some as arrays of numpy whose tensors are gone."""
    model, kept = network().eval(), []
    with torch.inference_mode():
        for number in iterations():
            result = model(torch.full((4, 3, 32, 32), number / 10))
            kept.append(result.numpy() if number % 3 else result)
    for number, result in enumerate(kept):
        show(number, torch.as_tensor(result))


def training(workers=0):
    """Training, with an evaluation now and then."""
    model = network()
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.utils.data.TensorDataset(torch.randn(120, 3, 32, 32), torch.randint(0, 10, (120,)))
    batches = torch.utils.data.DataLoader(data, batch_size=4, num_workers=workers)
    for number, (images, labels) in zip(iterations(), batches):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        show(number, loss)
        if number % 7 == 6:
            with torch.no_grad():
                show(number, model(images))


def workers():
    """The same with processes that load data."""
    training(2)


def threads():
    """A thread infers; others allocate beside it, and free what it has made."""
    results, ended = queue.Queue(), threading.Event()

    def beside():
        while not ended.is_set():
            torch.empty(10000).fill_(1.0)
            time.sleep(0.0005)

    def ending():
        while True:
            item = results.get()
            if item is None:
                return
            show(*item)

    others = [threading.Thread(target=beside), threading.Thread(target=ending)]
    for other in others:
        other.start()
    model = network().eval()

    def infer():
        with torch.inference_mode():
            for number in iterations():
                results.put((number, model(torch.full((4, 3, 32, 32), number / 10))))

    thread = threading.Thread(target=infer)
    thread.start()
    thread.join()
    results.put(None)
    ended.set()
    for other in others:
        other.join()


def lengths():
    """Sequences of lengths that vary."""
    layer = torch.nn.TransformerEncoderLayer(64, 4, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval()
    with torch.no_grad():
        for number in iterations():
            show(number, model(torch.full((2, 16 + 8 * (number % 5), 64), number / 10)))


def marked():
    """Sequences that grow call by call, as in generation: the script marks what comes again."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "xmem-python/python"))
    import xmem

    layer = torch.nn.TransformerEncoderLayer(64, 4, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval()
    with torch.no_grad():
        for number in iterations():
            with xmem.planned():
                for length in range(16, 96, 8):
                    show(number, model(torch.full((2, length, 64), number / 10)))


torch.manual_seed(0)
torch.set_num_threads(2)
globals()[sys.argv[1]]()
