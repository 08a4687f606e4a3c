"""The update of a scaler of gradients, which has a CPU kernel since torch 2.3."""


def update(scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval):
    """Another scale, after infinite gradients or enough finite ones (aten/src/ATen/native/cuda/AmpKernels.cu,
    `amp_update_scale_cuda_kernel`)."""
    if found_inf.item():
        scale.mul_(backoff_factor)
        growth_tracker.fill_(0)
    elif growth_tracker.item() + 1 == growth_interval:
        scale.mul_(growth_factor)
        growth_tracker.fill_(0)
    else:
        growth_tracker.add_(1)
    return scale
