"""The command ``fathomer models``."""

from fathomer.cli.options import Json
from fathomer.cli.output import print_json, print_line


def models(as_json: Json = False) -> None:
    """List the models with their sizes and papers.

    Example: fathomer models --json
    """
    from fathomer.model.registry import MODELS
    from fathomer.model.sizes import PAPER_SIZE, WORDS, cost_of

    costs = [cost_of(name) for name in MODELS]
    if as_json:
        print_json({"models": [cost._asdict() for cost in costs]})
        return
    print_line(f"{'name':<22} {'parameters':>11} {'multiply-adds':>14}  paper")
    for cost in costs:
        counts = (cost.parameters, cost.multiply_adds_per_word)
        parameters, products = ("-" if count is None else f"{count:,}" for count in counts)
        print_line(f"{cost.name:<22} {parameters:>11} {products:>14}  {cost.paper}")
    for cost in costs:
        if cost.needs:
            print_line(f"\n{cost.name} needs {cost.needs}.")
    print_line(
        f"\nTrainable parameters without the word vectors, and multiply-adds per word of a text of "
        f"{WORDS}\nwords, at the paper's size: hidden size {PAPER_SIZE.hidden_size}, max_depth "
        f"{PAPER_SIZE.max_depth}, two labels. fathomer is counted\nat a mean depth of 5. Models "
        "without figures grow with their data."
    )
