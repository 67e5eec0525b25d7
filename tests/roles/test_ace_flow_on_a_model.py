"""The three usage examples of the ACE system, with a language model in every role."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from acefraud import (
    BulletPlaybook,
    Curator,
    HybridSelector,
    LLMJudge,
    Reflector,
    SimpleFraudAgent,
    load_dataset,
)
from acefraud.llm.client import ModelClient

if TYPE_CHECKING:
    from tests.llm.loopback import LoopbackServer

pytestmark = [pytest.mark.wide, pytest.mark.enable_socket]
MODEL = "openai:gpt-4o-mini"
NODE = "fraud_detection"


def test_the_three_examples_on_a_model(server: LoopbackServer, client: ModelClient) -> None:
    train_set = load_dataset("complex_fraud_detection")
    playbook, curator, selector = BulletPlaybook(), Curator(), HybridSelector()
    reflector = Reflector(model=MODEL, base_url=server.base_url, client=client)
    judge = LLMJudge(model=MODEL, base_url=server.base_url, client=client)

    async def offline_training() -> None:
        for item in train_set[:80]:
            bullet = await reflector.reflect(
                query=item["query"], predicted=item["answer"], correct=item["answer"], node="fraud_detection"
            )
            if bullet:
                curator.merge_bullet(
                    content=bullet["new_bullet"], node="fraud_detection", playbook=playbook, source="offline"
                )

    async def online() -> int:
        wrong = 0
        for item in train_set.test[:12]:
            transaction, ground_truth = item["query"], item["answer"]
            bullets, _ = selector.select_bullets(
                query=transaction, node="fraud_detection", playbook=playbook, n_bullets=5, source="offline"
            )
            agent = SimpleFraudAgent(
                model=MODEL, base_url=server.base_url, client=client, bullets=[b.content for b in bullets]
            )
            decision = agent.analyze(transaction)
            is_correct, confidence = await judge.judge(
                input_text=transaction, output=decision, ground_truth=ground_truth
            )
            assert is_correct is (decision == ground_truth)
            assert confidence == 1.0
            if not is_correct:
                wrong += 1
                bullet = await reflector.reflect(
                    query=transaction, predicted=decision, correct=ground_truth, node="fraud_detection"
                )
                if bullet:
                    assert bullet["learnt_from"] == "failure"
                    curator.merge_bullet(
                        content=bullet["new_bullet"], node="fraud_detection", playbook=playbook, source="online"
                    )
        unlabelled, _ = await judge.judge(input_text=train_set.test[0]["query"], output="APPROVE")
        assert unlabelled is not None, "without the truth the model judges"
        return wrong

    asyncio.run(offline_training())
    learnt = playbook.get_bullets_for_node(NODE)
    measured = [bullet for bullet in learnt if bullet.verified]
    assert measured
    assert all(bullet.evidence is not None and bullet.condition is not None for bullet in measured)
    assert asyncio.run(online()) < 12
    roles = {call.role for call in server.log}
    assert {"agent", "judge", "reflector"} <= roles
