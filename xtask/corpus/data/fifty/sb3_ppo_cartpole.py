# Stable-Baselines3 quick start
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

vec_env = make_vec_env("CartPole-v1", n_envs=4)
model = PPO(
    "MlpPolicy",
    vec_env,
    verbose=1,
    n_steps=128,
    batch_size=128,
    n_epochs=4,
    device="cuda",
    policy_kwargs=dict(net_arch=dict(pi=[1024, 1024], vf=[1024, 1024])),
)
model.learn(total_timesteps=1024)
model.save("ppo_cartpole")
del model
model = PPO.load("ppo_cartpole", device="cuda")
mean, std = evaluate_policy(model, gym.make("CartPole-v1"), n_eval_episodes=2)
print(f"mean reward {mean:.1f} +- {std:.1f}")
