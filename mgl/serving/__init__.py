"""Model servers: how one is launched for a machine, watched, and asked what it can do.

    profile = load_serving_profile("cpu")              # serving/cpu.yaml
    plan = make_plan(profile, model, Launch(folder, python))
    print(plan.shell())

Nothing is imported here: each module is small, and is imported where it is needed.
"""
