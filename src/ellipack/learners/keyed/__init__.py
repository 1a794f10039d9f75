"""The learner of `KeyedRegressor`: one learner of all keys, one learner for each key, and their combination."""
