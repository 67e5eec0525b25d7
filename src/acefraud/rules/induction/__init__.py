"""Rule induction by gradient boosting: conditions that explain what the rules so far still get wrong.

1. Facts are cut into bins, at quantiles of all rows and of the fraud rows. Categories with many values are cut into
   groups of values with a similar share of fraud, estimated for each row without its own label (`bins`).
2. Each round takes gradient g = y - p and hessian h = p(1 - p) of the log-loss, and grows a small tree on a subsample
   by Newton gain G²/(H + lambda). Each branch, pruned to the tests that are worth their price, is a candidate rule
   (`trees`).
3. The best candidates, if they are worth more than what shuffled labels bring, join the rules, and all weights are
   fitted again by logistic regression with an L1 penalty; rules whose weight falls to zero go (`fitting`). Rounds end
   when the out-of-time cases stop improving (`boosting`).
4. A rule is kept only if its effect holds on the out-of-time cases, the latest ones (`out_of_time`), and if no simpler
   rule holds on nearly the same cases.
5. The weights of the kept rules are fitted on all cases, with as many rules per case as a decision may cite. Slope and
   level are calibrated on the out-of-time cases (`fitting`).
6. A whole history is searched several times. The average of the searches is distilled into one set of rules, the fewest
   that reproduce it (`boosting`); `induce` runs all of this.

Imports `core` and the other modules of `rules`.
"""
